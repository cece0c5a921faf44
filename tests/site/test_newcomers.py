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
        "multihead.html",
        "A second head adds a second row of weights",
    ),
    "what GQA is": (SHARED, "a group of query heads shares one key head"),
    "get the doctor": (DOCTOR, "pip install ."),
    "print a chapter": ("intro.html#print-a-chapter", "To print a chapter"),
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
