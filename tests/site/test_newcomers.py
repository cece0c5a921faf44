"""What a newcomer asks is led to from the first screen, and answered at once.

Nobody looks for an answer below the screen on which a link has put them.
"""

import re

import pytest
from playwright.sync_api import expect

WINDOWS = {
    "wide": {"width": 1280, "height": 900},
    "narrow": {"width": 360, "height": 740},
}
SHARED = "multihead.html#heads-that-share-keys-and-the-memory-of-a-cache"
DOCTOR = "intro.html#the-doctor-what-is-wrong-with-your-attention"
SECOND = "multihead.html#lab=multihead&n_heads=2&n_kv_heads=2"
PRINT = "intro.html#print-a-chapter"
# By the words of the link: where it leads, and words of the answer.
LED = {
    "My loss is NaN": (
        "doctor.html#where-the-nan-begins",
        "zero times minus infinity",
    ),
    "What does a second head add?": (SECOND, "words look most at another"),
    "What is GQA?": (SHARED, "a group of query heads shares one key head"),
    "Get the doctor": (DOCTOR, "python -m selfattn.doctor yours.py"),
    "Print a chapter": (PRINT, "Press its number"),
    "A word I do not know": ("glossary.html", "The words of the field"),
}
# By the words of the link: an element whose words are all read by then.
READ = {
    "My loss is NaN": "#where-the-nan-begins ol",
    "What does a second head add?": ".lab-insight",
    "What is GQA?": f"section[id='{SHARED.partition('#')[2]}'] > p",
    "Get the doctor": f"section[id='{DOCTOR.partition('#')[2]}'] pre",
    "Print a chapter": "#print-a-chapter .print-numbers",
}
# Asked in the search, and told above what was found.
ASKED = {
    "what is GQA": "share a key head and a value head",
    "kv cache": "The keys and values of all tokens so far",
    "LSH": "number vectors at random",
    "softmax": "divided by the sum of them all",
    "NaN": "Not a number",
    "RoPE": "Rotary position embedding",
    "top-p": "the fewest likeliest tokens that together have at least",
    "grouped-query attention": "share a key head and a value head",
}


def asked(page, words):
    """The link with these words in the row of questions."""
    row = page.locator(".questions")
    return row.get_by_role("link", name=words, exact=True)


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
    link = asked(page, words)
    box = link.bounding_box()
    assert box["y"] + box["height"] <= WINDOWS[window]["height"]
    link.click()
    address, answer = LED[words]
    page.wait_for_url(f"**/{address}")
    page.wait_for_load_state("networkidle")
    assert in_sight(page, answer)


@pytest.mark.parametrize("words", READ)
def test_an_answer_is_read_in_a_quarter_of_a_minute(site_url, page, words):
    """Four words a second: a table and a paragraph stood before it."""
    page.set_viewport_size(WINDOWS["wide"])
    page.goto(f"{site_url}book/intro.html")
    asked(page, words).click()
    page.wait_for_load_state("networkidle")
    answer = page.locator(READ[words]).first
    expect(answer).to_be_visible()
    before = page.evaluate(
        """(last) => {
          const seen = [...document.querySelectorAll(
            "article :is(h2, h3, p, li, pre)")].filter((e) => {
            const { top } = e.getBoundingClientRect();
            return top >= 0 && e.checkVisibility()
              && !e.closest(".selfattn-lab, .lab-place")
              && e.compareDocumentPosition(last)
                & (Node.DOCUMENT_POSITION_FOLLOWING) && !e.contains(last);
          });
          return seen.map((e) => e.innerText).join(" ");
        }""",
        answer.element_handle(),
    )
    read = f"{before} {answer.inner_text()}".split()
    assert len(read) <= 60


def test_a_second_head_is_seen_in_the_lab_at_once(site_url, page):
    """One chose a lab, moved two sliders, and unfolded an answer."""
    page.goto(f"{site_url}book/intro.html")
    asked(page, "What does a second head add?").click()
    lab = page.locator(".lab-place .selfattn-lab")
    expect(lab.locator(".lab-insight")).to_contain_text(
        "The second head adds a table of weights"
    )
    maps = lab.locator("canvas.lab-map:visible")
    expect(maps).to_have_count(2)
    expect(maps.last).to_be_in_viewport()


def test_the_doctors_line_is_copied_with_its_address(site_url, page):
    """One had to find and to save a file first."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{site_url}book/{DOCTOR}")
    section = page.locator(f"section[id='{DOCTOR.partition('#')[2]}']")
    block = section.locator("div.highlight-sh")
    block.hover()
    block.get_by_role("button", name="Copy this code").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    first, second = copied.splitlines()
    address = first.removeprefix("pip install ")
    assert address.startswith(site_url)
    assert page.request.get(address).ok
    assert second == "python -m selfattn.doctor yours.py"
    expect(section.get_by_text("First save")).to_be_hidden()


def test_from_disk_the_doctors_file_is_told_first(site, page):
    page.goto(f"{site.as_uri()}/book/{DOCTOR}")
    saved = page.locator(".wheel-saved")
    expect(saved).to_be_visible()
    assert saved.locator("a").get_attribute("href").endswith(".whl")


def test_a_chapter_is_printed_by_its_number_and_once(site_url, page):
    """One opened the chapter, then a menu, then chose in it."""
    page.add_init_script(
        "window.print = () => { document.body.dataset.printed = 'so'; };"
    )
    page.goto(f"{site_url}book/{PRINT}")
    numbers = page.locator(".print-numbers a")
    third = numbers.nth(2)
    assert third.inner_text() == "3"
    assert third.get_attribute("title") == "Print “Why divide by √dₖ”"
    third.click()
    body = page.locator("body")
    expect(body).to_have_attribute("data-printed", "so")
    assert page.url == f"{site_url}book/scaling.html"
    page.reload(wait_until="load")
    page.wait_for_timeout(300)
    assert body.get_attribute("data-printed") is None


def test_the_lab_stays_on_the_first_screen(site_url, new_page):
    page = new_page(viewport=WINDOWS["wide"])
    page.goto(f"{site_url}book/intro.html")
    box = page.locator(".selfattn-lab").bounding_box()
    assert box["y"] + box["height"] <= WINDOWS["wide"]["height"]


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
    page.goto(f"{site_url}book/multihead.html#two-rows-two-answers")
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


def test_where_the_wheel_is_holds_on_a_server_and_on_disk(
    site, site_url, page
):
    """It was said to lie beside the page, and lies a folder further up."""
    page.goto(f"{site_url}book/{DOCTOR}")
    assert "beside this page" not in page.locator("article").inner_text()
    (line,) = re.findall(
        r"pip install (\S+\.whl)", page.locator("article").inner_text()
    )
    assert page.request.get(line).ok
    page.goto(f"{site.as_uri()}/book/{DOCTOR}")
    assert "beside this page" not in page.locator("article").inner_text()
    saved = page.locator(".wheel-saved a").get_attribute("href")
    assert (site / "book" / saved).is_file()


def test_a_finger_meets_boxes_and_the_way_up_covers_little(site_url, new_page):
    """Boxes were 13 pixels wide; *Back to top* lay over a lab's numbers."""
    page = new_page(viewport={"width": 360, "height": 740}, has_touch=True)
    page.goto(site_url + "book/intro.html")
    box = page.locator(".lab-runs input[type=checkbox]").bounding_box()
    assert min(box["width"], box["height"]) >= 24
    page.evaluate("scrollTo(0, 3000)")
    page.wait_for_timeout(200)
    page.evaluate("scrollTo(0, 2500)")
    up = page.get_by_role("button", name="Back to top")
    up.wait_for()
    box = up.bounding_box()
    assert box["x"] > 300 and box["x"] + box["width"] <= 360
    assert 44 <= box["width"] < 50
    up.tap()
    page.wait_for_function("scrollY === 0")
