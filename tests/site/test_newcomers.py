"""What a newcomer asks is led to from the first screen, and answered at once.

Nobody looks for an answer below the screen on which a link has put them.
"""

import pytest
from playwright.sync_api import expect

WINDOWS = {
    "wide": {"width": 1280, "height": 900},
    "narrow": {"width": 360, "height": 740},
}
SHARED = "multihead.html#heads-that-share-keys-and-the-memory-of-a-cache"
DOCTOR = "intro.html#the-doctor-what-is-wrong-with-your-attention"
# By the words of the link: where it leads, and words of the answer.
LED = {
    "My loss is NaN": (
        "doctor.html#where-the-nan-begins",
        "the scale, if it is missing",
    ),
    "what a second head adds": (
        "multihead.html#two-rows-two-answers",
        "With two rows of weights",
    ),
    "what GQA is": (SHARED, "a group of query heads shares one key head"),
    "get the doctor": (DOCTOR, "pip install ."),
    "print a chapter": ("intro.html#print-a-chapter", "Open the chapter, and"),
    "a word I do not know": ("glossary.html", "The words of the field"),
}
# Asked in the search, and told above what was found.
ASKED = {
    "what is GQA": "share a key head and a value head",
    "kv cache": "The keys and values of all tokens so far",
    "LSH": "number vectors at random",
    "grouped-query attention": "share a key head and a value head",
}


def in_sight(page, words):
    """Whether all of an element with these words is on the screen.

    The lines after them may go on below it.
    """
    place = page.get_by_text(words).first
    expect(place).to_be_visible()
    top = page.evaluate(
        """([e, words]) => {
          const walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
          const range = document.createRange();
          const first = words.slice(0, 8);
          while (walk.nextNode()) {
            const at = walk.currentNode.data.indexOf(first);
            if (at < 0) continue;
            range.setStart(walk.currentNode, at);
            range.setEnd(walk.currentNode, at + first.length);
            return range.getBoundingClientRect().bottom;
          }
          return e.getBoundingClientRect().top;
        }""",
        [place.element_handle(), words],
    )
    return 0 <= top <= page.viewport_size["height"]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("words", LED)
def test_the_first_screen_leads_to_an_answer_in_sight(
    site_url, new_page, words, window
):
    page = new_page(viewport=WINDOWS[window])
    page.goto(f"{site_url}book/intro.html")
    link = page.get_by_role("link", name=words, exact=True)
    box = link.bounding_box()
    assert box["y"] + box["height"] <= WINDOWS[window]["height"]
    link.click()
    address, answer = LED[words]
    page.wait_for_url(f"**/{address}")
    page.wait_for_load_state("networkidle")
    assert in_sight(page, answer)


WHERE = "doctor.html#where-the-nan-begins"
# By the row of the table: words of what explains it, each in sight at once.
EXPLAINED = {
    "the scores": (
        "the weights must sharpen with",
        "Normalise queries and keys",
        "Add 1 to every score",
    ),
    "the softmax": ("Add 1 to every score",),
    "a row where all": ("What should a query get that may look at nobody",),
}


@pytest.mark.parametrize("row", EXPLAINED)
def test_where_a_nan_began_leads_to_the_section_that_explains_it(
    site_url, new_page, row
):
    """One led to the top of a chapter."""
    page = new_page()
    page.goto(f"{site_url}book/{WHERE}")
    line = page.locator("#where-the-nan-begins tbody tr", has_text=row)
    links = line.locator("a").evaluate_all("(all) => all.map((a) => a.href)")
    assert len(links) == len(EXPLAINED[row])
    for link, answer in zip(links, EXPLAINED[row], strict=True):
        page.goto(link)
        page.wait_for_load_state("networkidle")
        section = page.locator(f"section[id='{link.partition('#')[2]}']")
        expect(section.get_by_text(answer).first).to_be_visible()


def test_what_warns_of_a_mistake_leads_to_a_section_of_a_chapter(
    site_url, page
):
    page.goto(f"{site_url}book/doctor.html")
    warned = page.locator("#what-the-sources-warn-of-second-reading table a")
    links = warned.evaluate_all("(all) => all.map((a) => a.href)")
    assert len(links) > 15
    assert [link for link in links if "#" not in link] == []


def test_what_else_makes_a_nan_is_said(site_url, page):
    """All rows were about attention, and nothing said so."""
    page.goto(f"{site_url}book/{WHERE}")
    said = page.locator("#where-the-nan-begins").inner_text()
    for other in ("learning rate", "logarithm of zero", "half precision"):
        assert other in said


@pytest.mark.parametrize("window", WINDOWS)
def test_what_a_second_head_adds_is_drawn_where_its_link_leads(
    site_url, new_page, window
):
    """The chapter's first picture was two thousand pixels further down."""
    page = new_page(viewport=WINDOWS[window])
    page.goto(f"{site_url}book/{LED['what a second head adds'][0]}")
    drawn = page.locator("#two-rows-two-answers svg.drawing")
    box = drawn.bounding_box()
    assert box["width"] <= WINDOWS[window]["width"]
    assert box["y"] < WINDOWS[window]["height"] - 120
    assert page.locator("article svg.drawing").first.evaluate(
        "(e) => !!e.closest('#two-rows-two-answers')"
    )


@pytest.mark.parametrize("window", WINDOWS)
def test_a_term_is_told_above_what_is_found(site_url, new_page, window):
    page = new_page(viewport=WINDOWS[window])
    for query, answer in ASKED.items():
        page.goto(f"{site_url}search.html?q={query}")
        told = page.locator(".search-term")
        expect(told).to_contain_text(answer)
        box = told.bounding_box()
        assert box["y"] + box["height"] <= WINDOWS[window]["height"]
        first = page.locator("#search-results li a").first
        more = told.locator("a").last
        assert more.get_attribute("href") == first.get_attribute("href")
    page.goto(f"{site_url}search.html?q=how does flash attention work")
    page.locator("#search-results li").first.wait_for()
    assert page.locator(".search-term").count() == 0


def test_where_the_wheel_is_holds_on_a_server_and_on_disk(site_url, page):
    """It was said to lie beside the page, and lies a folder further up."""
    page.goto(f"{site_url}book/intro.html")
    said = page.locator("article.bd-article").inner_text()
    assert "beside this page" not in said
    assert ".whl, which is part of this site" in said
