"""A page on paper: light from any screen, the solutions after all else."""

import io
import re

import pytest
from contrast import contrast
from playwright.sync_api import expect
from pypdf import PdfReader

from tools.build.offline import (
    WHOLE,
    bookmarks,
    headings,
    printed,
    spell_out,
)

# The colours of each text that is seen, and of what is behind it.
TEXTS = """() => {
  const ground = (e) => {
    if (!e) return "rgb(255, 255, 255)";
    const { backgroundColor } = getComputedStyle(e);
    return /, 0\\)$/.test(backgroundColor) ? ground(e.parentElement)
      : backgroundColor;
  };
  const seen = new Set();
  for (const e of document.querySelectorAll("main article *")) {
    const texts = [...e.childNodes].filter((n) => n.nodeType === 3);
    if (!texts.some((n) => n.data.trim()) || !e.checkVisibility()) continue;
    seen.add(`${getComputedStyle(e).color} on ${ground(e)}`);
  }
  return [...seen];
}"""


def without_tab_stops(html):
    """What is folded gets its tab stops when it is first laid out."""
    return re.sub(r' tabindex="-?\d"', "", html)


def in_six_digits(colour):
    parts = re.findall(r"[\d.]+", colour)[:3]
    return "#" + "".join(f"{round(float(part)):02x}" for part in parts)


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_paper_is_light(site_url, new_page, scheme):
    """As the browser prints it with its backgrounds, and without."""
    page = new_page(color_scheme=scheme)
    page.goto(f"{site_url}book/scaling.html")
    page.emulate_media(media="print", color_scheme=scheme)
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    pairs = [pair.split(" on ") for pair in page.evaluate(TEXTS)]
    assert len(pairs) > 5  # text, links, code in several colours
    for text, ground in pairs:
        text, ground = in_six_digits(text), in_six_digits(ground)
        assert contrast(text, ground) >= 4.5
        assert contrast(text, "#ffffff") >= 4.5
    page.emulate_media(media="screen", color_scheme=scheme)
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)


def test_solutions_stand_last_on_paper_and_back_on_the_screen(site_url, page):
    page.goto(f"{site_url}book/scaling.html")
    page.wait_for_load_state("networkidle")  # scripts have drawn
    article = page.locator("article.bd-article")
    before = without_tab_stops(article.inner_html())
    page.emulate_media(media="print")
    article.locator(".solutions-on-paper").wait_for()
    heads = article.locator("h2, h3, h4")
    texts = [text.strip("#") for text in heads.all_text_contents()]
    first = texts.index("Solutions")
    assert texts[first:].count("Solution") == texts.count("Solution") >= 3
    exercises = [text for text in texts[first + 1 :] if text != "Solution"]
    if exercises[-1] == "Notes":  # where links lead is told after them
        exercises.pop()
    assert exercises[0] == "Try it"  # its answers are no solution's
    assert exercises == [text for text in texts[:first] if text in exercises]
    page.emulate_media(media="screen")
    expect(article.locator(".solutions-on-paper")).to_have_count(0)
    assert without_tab_stops(article.inner_html()) == before


def test_nothing_to_click_is_on_paper(site_url, page):
    """Empty boxes for guesses, and contents that named no page."""
    page.goto(f"{site_url}book/scaling.html")
    clicked = page.locator(
        "#jb-print-toc, .guess, .answer-place, details.predicted > summary, "
        "div.cell details.hide > summary"
    )
    seen = "(all) => all.filter((e) => e.checkVisibility()).length"
    assert clicked.evaluate_all(seen) > 10
    for way in ("as it stands", WHOLE):
        page.emulate_media(media="screen")
        page.evaluate(f'"{way}"' if way != WHOLE else way)
        page.emulate_media(media="print")
        assert clicked.evaluate_all(seen) == 0


@pytest.mark.parametrize("width", [1280, 794])  # a window, and A4
def test_the_title_stands_above_the_text_and_in_line_with_it(
    site_url, page, width
):
    """On A4 it was twice as large, in the middle, and over the minutes."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{site_url}book/scaling.html")
    page.emulate_media(media="print")
    title = page.locator("#jb-print-docs-body h1").bounding_box()
    minutes = page.locator("article .reading-time").bounding_box()
    assert page.locator("#jb-print-docs-body h1").inner_text()[:3] == "3. "
    assert title["y"] + title["height"] <= minutes["y"]
    assert title["x"] == minutes["x"]
    assert title["height"] < 2 * minutes["height"] + 10


def test_no_sentence_has_a_tests_name_in_it_on_paper(site_url, page):
    page.goto(f"{site_url}book/scaling.html")
    page.emulate_media(media="print")
    names = page.locator(".claim-mention .claim-test")
    assert names.count() > 3
    assert not any(names.nth(i).is_visible() for i in range(names.count()))
    page.goto(f"{site_url}book/claims.html")
    page.emulate_media(media="print")
    assert page.locator("table .claim-test").first.is_visible()


def test_what_is_folded_on_paper_is_told_where_it_stands(site_url, page):
    """And what is open on paper has no mark of what can be opened."""
    page.goto(f"{site_url}book/scaling.html")
    page.emulate_media(media="print")
    claims = page.locator("details.claims-box > summary").first
    after = claims.evaluate("(e) => getComputedStyle(e, '::after').content")
    assert after == '": see the page of claims"'
    marked = page.locator("article summary").evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e).listStyleType)"
    )
    assert {*marked} == {"none"}


SECOND = "article details.second-reading"


def test_paper_has_the_main_way_and_what_was_opened(site_url, page):
    """A chapter to hand out had 37 pages, the plots' code in full length."""
    page.goto(f"{site_url}book/masks.html")
    second = page.locator(f"{SECOND} > :nth-child(2)")
    assert second.count() > 10
    page.locator(f"{SECOND} > summary").nth(1).click()
    page.emulate_media(media="print")
    expect(second.nth(1)).to_be_visible()
    seen = [one.is_visible() for one in second.all()]
    assert seen.count(True) == 1
    lines = page.locator(f"{SECOND} > summary").evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e, '::after').content)"
    )
    assert {*lines[:1], *lines[2:]} == {'" (folded, so not printed)"'}
    assert lines[1] == "none"
    predicted = page.locator("article details.predicted .cell_output").first
    assert predicted.is_visible()  # what was asked is answered
    inputs = page.locator("article .tag_hide-input .cell_input pre")
    outputs = page.locator("article .tag_hide-input .cell_output img")
    in_sight = f":not({SECOND}:not([open]) *)"
    assert not any(one.is_visible() for one in inputs.all())
    assert outputs.and_(page.locator(in_sight)).first.is_visible()
    solved = page.locator(".solutions-on-paper .cell_input pre")
    assert solved.count() >= 3
    assert all(one.is_visible() for one in solved.all())


def test_a_chapter_to_hand_out_is_shorter_than_all_of_it(site_url, page):
    address = f"{site_url}book/masks.html"
    short, whole = (
        len(PdfReader(io.BytesIO(content)).pages)
        for content in (
            printed(page, address, whole=False),
            printed(page, address),
        )
    )
    assert short <= 0.65 * whole


def test_all_of_a_page_is_printed_by_a_button(site_url, page):
    """And the next print is again of what stands open."""
    page.goto(f"{site_url}book/masks.html")
    paper = "document.documentElement.dataset.paper"
    page.evaluate(f"window.print = () => {{ window.printed = {paper}; }}")
    page.get_by_label("Download this page").click()
    page.get_by_text("Print, or PDF, unfolded").click()
    assert page.evaluate("window.printed") == "whole"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(paper) is None


def test_where_a_link_leads_is_a_note_on_paper(site_url, page):
    """Whose sources stood as a year in a handout, and no more."""
    page.goto(f"{site_url}book/masks.html")
    page.wait_for_load_state("networkidle")
    before = without_tab_stops(page.locator("article.bd-article").inner_html())
    page.emulate_media(media="print")
    notes = page.locator(".notes-on-paper li")
    expect(notes.first).to_be_visible()
    told = notes.all_inner_texts()
    marks = page.locator("article .note-mark").all_inner_texts()
    assert {*marks} == {str(n) for n in range(1, len(told) + 1)}
    assert any("Williams and David Zipser. A learning" in one for one in told)
    assert len({*told}) == len(told)
    second = page.locator(f"{SECOND} .note-mark")
    assert second.count() == 0  # what is not printed leads nowhere
    last = page.locator("article > :is(.notes-on-paper, .solutions-on-paper)")
    assert "notes" in last.last.get_attribute("class")
    page.emulate_media(media="screen")
    expect(page.locator(".notes-on-paper")).to_have_count(0)
    after = without_tab_stops(page.locator("article.bd-article").inner_html())
    assert after == before


def test_a_note_on_code_elsewhere_is_its_address(site_url, page):
    page.goto(f"{site_url}book/masks.html")
    page.evaluate(WHOLE)
    page.emulate_media(media="print")
    notes = page.locator(".notes-on-paper li")
    notes.first.wait_for(state="attached")  # they are made as one prints
    told = notes.all_inner_texts()
    assert "https://github.com/pytorch/pytorch/issues/103082" in told


def test_a_card_is_whole_on_paper(site_url, page):
    """Every third stood on two pages, its title on the one before."""
    content = printed(page, f"{site_url}book/intro.html")
    texts = [
        one.extract_text() for one in PdfReader(io.BytesIO(content)).pages
    ]
    cards, how_to_print, _ = "\f".join(texts).rpartition("Print a chapter")
    assert how_to_print
    texts = cards.split("\f")
    titles = re.findall(r"^\d+\. .+", cards, re.MULTILINE)
    assert len(titles) > 20
    for text in texts:
        # The small k of a title comes after the whole card, before the next.
        cards = len(re.findall(r"^(?:k )?\d+\. ", text, re.MULTILINE))
        assert cards == len(re.findall(r"^\d+ minutes", text, re.MULTILINE))


# Lines of code that go on in the next line of the paper.
WRAPPED = """() => [...document.querySelectorAll(".cell_input pre")]
  .filter((e) => e.checkVisibility())
  .filter((e) => {
    e.style.whiteSpace = "pre";
    return e.scrollWidth > e.clientWidth;
  }).map((e) => e.textContent.slice(0, 60))"""


@pytest.mark.parametrize("name", ["masks", "doctor"])
def test_a_line_of_code_is_a_line_on_paper(site_url, new_page, name):
    """On A4 with the PDF's margins; more than half of the cells had others."""
    page = new_page(viewport={"width": 657, "height": 970})
    page.goto(f"{site_url}book/{name}.html")
    page.evaluate(WHOLE)
    page.emulate_media(media="print")
    assert page.locator(".cell_input pre").count() > 50
    assert page.evaluate(WRAPPED) == []


def test_a_bookmark_keeps_the_spaces_of_a_heading_in_two_lines(site_url, page):
    content = printed(page, f"{site_url}book/positions.html")
    reader = PdfReader(io.BytesIO(content))
    heads = headings(page)
    spell_out(reader, heads)
    titles = [one.title for one in reader.outline if isinstance(one, dict)]
    assert titles == heads[:1] == ["6. Telling attention where things are"]
    found = bookmarks(reader.root_object["/Outlines"])
    assert {"By hand: from counting to waves", "Try it"} <= {
        one["/Title"] for one in found
    }


def test_an_answer_on_paper_does_not_stand_beside_its_question(site_url, page):
    """With the cells that test it; on the screen both are as they were."""
    page.goto(f"{site_url}book/origins.html")
    page.wait_for_load_state("networkidle")
    article = page.locator("article.bd-article")
    before = without_tab_stops(article.inner_html())
    question = article.locator(
        "section#on-paper-the-additive-score-without-its-tanh"
    )
    beside = question.locator("details.answer, .cell")
    assert beside.count() == 2
    page.emulate_media(media="print")
    article.locator(".solutions-on-paper").wait_for()
    assert beside.count() == 0
    name = article.locator(".solutions-on-paper > h3", has_text="On paper")
    after = name.locator("xpath=following-sibling::*")
    assert after.nth(0).get_attribute("class") == "answer"
    assert "additive.W_q" in after.nth(1).inner_text()
    page.emulate_media(media="screen")
    expect(article.locator(".solutions-on-paper")).to_have_count(0)
    assert without_tab_stops(article.inner_html()) == before


# What a page of paper may part, and what it may not.
WHOLE_SOURCES = """() => [...document.querySelectorAll(
    ".bd-article :is(pre, [class*=highlight])")]
  .filter((e) => !e.closest(".cell_input, .output, .few-lines"))
  .filter((e) => {
    const { breakInside, overflowX, display } = getComputedStyle(e);
    return e.matches("div, pre") && (breakInside !== "auto"
      || overflowX !== "visible" || display === "flex");
  }).map((e) => `${e.className}: ${e.textContent.slice(0, 40)}`)"""


@pytest.mark.parametrize("name", ["layers", "claim-tests", "conclusion-tests"])
def test_a_long_source_is_parted_between_pages(site_url, page, name):
    """It went to the next page as one, and left two thirds of one empty."""
    page.goto(f"{site_url}book/{name}.html")
    page.emulate_media(media="print")
    assert page.evaluate(WHOLE_SOURCES) == []
    printed_lines = page.locator("article .output pre")
    assert {"avoid"} >= {
        one.evaluate("(e) => getComputedStyle(e).breakInside")
        for one in printed_lines.all()
    }  # a few lines of output stay together


def test_no_heading_is_left_alone_by_what_is_folded(site_url, page):
    """A box of folded code parted one from its figure, on the next page."""
    page.goto(f"{site_url}book/devices.html")
    page.emulate_media(media="print")
    folded = page.locator("article .cell details.hide.left-out")
    assert folded.count() > 3
    for one in folded.all():
        assert one.evaluate("(e) => getComputedStyle(e).display") == "none"


def test_two_drawings_have_room_on_one_page(site_url, new_page):
    """Before and after the norm are compared; each had a page."""
    page = new_page(viewport={"width": 657, "height": 970})
    page.goto(f"{site_url}book/layers.html")
    page.emulate_media(media="print")
    drawn = page.locator("article .drawn:visible")
    boxes = [one.bounding_box() for one in drawn.all()]
    assert len(boxes) >= 2
    assert boxes[1]["y"] + boxes[1]["height"] - boxes[0]["y"] < 970


def test_many_marks_have_a_line_of_their_own_on_paper(site_url, page):
    """Seven rows of them stood within a line, and spread it."""
    page.goto(f"{site_url}book/doctor.html")
    page.emulate_media(media="print")
    strips = page.locator("article p .conclusion-strip:visible")
    tall = 0
    for strip in strips.all():
        rows = (int(strip.get_attribute("height")) + 2) // 7
        own = strip.evaluate("(e) => getComputedStyle(e).display") == "block"
        assert own == (rows > 3)
        tall += own
    assert tall


def test_all_strips_of_the_record_look_alike_on_paper(site_url, page):
    """Some were blue there, and had a line of their own."""
    page.goto(f"{site_url}book/conclusions.html")
    page.emulate_media(media="print")
    looks = page.locator(".conclusion-row .conclusion-strip").evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e))"
        ".map(({ color, display }) => color + display)"
    )
    assert len(looks) > 90 and len({*looks}) == 1


def test_a_conclusion_is_whole_on_paper(site_url, page):
    """Its test stood alone on the next page."""
    page.goto(f"{site_url}book/conclusions.html")
    page.emulate_media(media="print")
    rows = page.locator(".conclusion-row").evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e).breakInside)"
    )
    assert len(rows) > 100
    assert {*rows} == {"avoid"}


def test_a_head_that_is_painted_again_has_words(site_url, page):
    """Chromium leaves buttons out there: five tables went on without names."""
    page.goto(f"{site_url}book/bench.html")
    buttons = page.locator("article thead button")
    many, words = buttons.count(), buttons.all_text_contents()
    assert many > 20
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert buttons.count() == 0
    heads = "".join(page.locator("article thead").all_text_contents())
    assert all(word in heads for word in words)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert buttons.all_text_contents() == words


def test_a_strip_does_not_part_its_sentence_on_paper(site_url, page):
    """On a line of its own it stood in the middle of one."""
    page.goto(f"{site_url}book/doctor.html")
    page.wait_for_load_state("networkidle")
    article = page.locator("article.bd-article")
    before = without_tab_stops(article.inner_html())
    tall = article.locator("a.conclusion .conclusion-strip[height='54']")
    assert tall.count() == 1
    page.emulate_media(media="print")
    strip = article.locator("p > .conclusion-strip[height='54']")
    expect(strip).to_be_visible()
    assert strip.evaluate("(e) => e.nextSibling === null")
    assert tall.count() == 0
    page.emulate_media(media="screen")
    expect(tall).to_have_count(1)
    assert without_tab_stops(article.inner_html()) == before


# A whole print unfolds what these words said was folded.
SAID_FOLDED = re.compile(r"folded (?:above|below|boxes|cell|parts)", re.I)


@pytest.mark.parametrize("name", ["layers", "masks", "positions", "scaling"])
def test_what_is_said_of_a_second_reading_holds_on_paper(site_url, page, name):
    page.goto(f"{site_url}book/{name}.html")
    page.evaluate(WHOLE)
    page.emulate_media(media="print")
    said = page.locator("article.bd-article").inner_text()
    assert SAID_FOLDED.findall(said) == []
    assert "second reading" in said


LABS = [
    "dot_product",
    "masks",
    "intro",
    *(f"efficient/{x}" for x in ["flash", "linear", "linformer", "window"]),
]


@pytest.mark.parametrize("name", LABS)
def test_a_lab_on_paper_is_a_still_and_says_so(site_url, page, name):
    """The text says to drag and to press, which nobody can there."""
    page.goto(f"{site_url}book/{name}.html")
    place = page.locator("article .lab-place")
    told = "(e) => getComputedStyle(e, '::after').content"
    assert place.evaluate(told) == "none"
    page.emulate_media(media="print")
    expect(place.locator("img.lab-still")).to_be_visible()
    assert "still of the lab. It runs on the site" in place.evaluate(told)
    code = page.locator(".cell:has(.lab-place) .cell_input pre")
    assert not code.is_visible()


# Width and height on paper, and of the file, of what is no panel of many.
PICTURES = """() => [...document.querySelectorAll(
    "article .cell_output img.dark-light:not(.panel *)")]
  .filter((e) => e.checkVisibility())
  .map((e) => [e.width, e.height, e.naturalWidth / e.naturalHeight])"""


@pytest.mark.parametrize("name", ["positions", "blocks", "cost"])
def test_a_picture_leaves_no_page_half_blank(site_url, new_page, name):
    """It went to the next page, and its code and its text with it."""
    page = new_page(viewport={"width": 657, "height": 970})
    page.goto(f"{site_url}book/{name}.html")
    page.emulate_media(media="print")
    page.wait_for_load_state("networkidle")
    found = page.evaluate(PICTURES)
    assert len(found) > 2
    for width, height, shape in found:
        assert height <= (970 / 3 + 6 if shape >= 1 else 970 * 0.57)
        assert width / height == pytest.approx(shape, rel=0.02)
    parts = page.locator(
        "article .cell_output:has(> :is(picture, .panels):first-child)"
    )
    assert parts.count()
    for part in parts.all():
        assert (
            part.evaluate("(e) => getComputedStyle(e).breakBefore") == "auto"
        )


# Of each cell: its lines, how it breaks, its rule, and its parts with theirs.
CODE = """() => [...document.querySelectorAll("article div.cell_input")]
  .filter((e) => e.checkVisibility())
  .map((e) => {
    const look = (one) => {
      const { overflow, breakInside, borderLeftWidth } = getComputedStyle(one);
      return [overflow, breakInside, borderLeftWidth];
    };
    const parts = [...e.querySelectorAll("pre")];
    return [parts.map((one) => one.textContent).join(""), look(e),
      parts.map((one) => [one.textContent, ...look(one).slice(1)])];
  })"""


def test_long_code_goes_on_on_the_next_page_and_short_code_does_not(
    site_url, page
):
    page.goto(f"{site_url}book/blocks.html")
    page.wait_for_load_state("networkidle")
    before = page.locator("article div.cell_input pre").all_text_contents()
    page.emulate_media(media="print")
    expect(page.locator("article .cell_input.long")).not_to_have_count(0)
    found = page.evaluate(CODE)
    is_long = [len(said.strip().split("\n")) > 12 for said, *_ in found]
    assert {*is_long} == {True, False}
    for long, (_, look, parts) in zip(is_long, found, strict=True):
        if not long:
            assert look == ["visible", "avoid", "3px"]
            assert len(parts) == 1
            continue
        assert look == ["visible", "auto", "0px"]
        for said, *part in parts:  # its rule ends with it
            assert part == ["avoid", "3px"]
            assert len(said.strip().split("\n")) >= 4
    assert any(len(parts) > 1 for *_, parts in found)
    page.emulate_media(media="screen")
    expect(page.locator("article .cell_input.long")).to_have_count(0)
    after = page.locator("article div.cell_input pre").all_text_contents()
    assert after == before


def test_paper_has_all_columns_of_a_wide_table(site_url, new_page):
    """The last of ten was cut off."""
    page = new_page(viewport={"width": 657, "height": 970})
    page.goto(f"{site_url}book/efficient/linformer.html")
    page.wait_for_load_state("networkidle")
    page.emulate_media(media="print")
    sizes = page.locator(".printed-table:visible").evaluate_all(
        "(all) => all.map((e) => [e.scrollWidth, e.clientWidth])"
    )
    assert len(sizes) > 5
    assert all(whole <= seen for whole, seen in sizes)


def test_a_long_table_begins_with_two_rows_and_ends_with_two(site_url, page):
    """Its head and one row stood alone at the foot of a page."""
    page.goto(f"{site_url}book/efficient/overview.html")
    page.emulate_media(media="print")
    table = page.locator("table.table", has_text="the sources")
    parted = table.locator("tbody tr").evaluate_all(
        """(all) => all.map((e) => [getComputedStyle(e).breakAfter,
          getComputedStyle(e).breakBefore])"""
    )
    assert len(parted) > 6
    kept = ["avoid"] * 2
    free = ["auto"] * (len(parted) - 2)
    after, before = map(list, zip(*parted, strict=True))
    assert (after, before) == (kept + free, free + kept)


def test_a_square_picture_is_no_larger_than_others_on_paper(
    site_url, new_page
):
    """Its letters made it higher than wide, and it had half of a page."""
    page = new_page(viewport={"width": 657, "height": 970})
    page.goto(f"{site_url}book/efficient/flash.html")
    page.emulate_media(media="print")
    page.wait_for_load_state("networkidle")
    found = page.evaluate(PICTURES)
    square = [height for *_, height, shape in found if 0.8 < shape < 1]
    assert square
    assert all(height <= 970 / 3 + 6 for height in square)


def test_no_rule_goes_on_beside_nothing(site_url, page):
    """Where a page is blank: that of an answer went down to its end."""
    page.goto(f"{site_url}book/positions.html")
    page.evaluate(WHOLE)
    page.emulate_media(media="print")
    open_ones = page.locator(
        "article details.predicted, article section > details.second-reading"
    )
    assert open_ones.count() > 10
    for one in open_ones.all():
        assert one.evaluate("(e) => getComputedStyle(e).borderLeftWidth") == (
            "0px"
        )


@pytest.mark.parametrize("name", ["positions", "dot_product", "blocks"])
def test_letters_of_a_picture_are_no_larger_than_those_of_the_text(
    site_url, new_page, name
):
    """A picture was as wide as the page, and half of a page stood blank."""
    page = new_page(viewport={"width": 657, "height": 970})
    page.goto(f"{site_url}book/{name}.html")
    page.emulate_media(media="print")
    page.wait_for_load_state("networkidle")
    shares = page.locator("article .cell_output img.dark-light").evaluate_all(
        """(all) => all.filter((e) => e.checkVisibility())
          .map((e) => e.width / Number(e.getAttribute("width")))"""
    )
    assert len(shares) > 2
    assert max(shares) <= 0.83


def test_no_row_of_a_table_stands_alone_on_paper(site_url, page):
    """The last of fifteen stood on the next page, under a head of its own."""
    page.goto(f"{site_url}book/dot_product.html")
    page.emulate_media(media="print")
    rows = page.locator("article table tbody").evaluate_all(
        """(all) => all.map(({ rows }) => [
          getComputedStyle(rows[0]).breakAfter,
          getComputedStyle(rows[rows.length - 1]).breakBefore])"""
    )
    assert rows
    assert {tuple(row) for row in rows} == {("avoid", "avoid")}


def test_marks_after_a_paragraph_have_the_colour_of_those_in_it(
    site_url, page
):
    """Black ones stood below blue ones, as if they were of another kind."""
    page.goto(f"{site_url}book/dot_product.html")
    page.emulate_media(media="print")
    moved = page.locator("article p > .conclusion-strip")
    expect(moved.first).to_be_visible()
    colours = page.locator("article .conclusion-strip:visible").evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e).color)"
    )
    assert len({*colours}) == 1


def test_a_formulas_number_stands_beside_it_on_paper(site_url, new_page):
    """It stood below, as on a phone."""
    page = new_page(viewport={"width": 657, "height": 970})
    page.goto(f"{site_url}book/dot_product.html")
    page.emulate_media(media="print")
    formula = page.locator(".katex-html:has(> .tag)").first
    high = formula.locator("> .tag").bounding_box()
    box = formula.locator(".base").first.bounding_box()
    assert high["y"] < box["y"] + box["height"]


def test_what_follows_a_prediction_does_not_touch_it_on_paper(site_url, page):
    """A text began right under the rule beside the question."""
    page.goto(f"{site_url}book/origins.html")
    page.emulate_media(media="print")
    question = page.locator("blockquote.predict").first.bounding_box()
    answer = page.locator("details.predicted").first.bounding_box()
    assert answer["y"] - question["y"] - question["height"] > 10


def test_a_word_of_code_is_not_broken_on_paper(site_url, new_page):
    """One read `pip install ".`, and below `[book]"`."""
    page = new_page(viewport={"width": 657, "height": 970})
    page.goto(f"{site_url}book/intro.html")
    page.emulate_media(media="print")
    word = page.locator("p > code > .pre", has_text="[book]").first
    assert word.evaluate("(e) => e.getClientRects().length") == 1


def printed_pages(page, address):
    """The lines of each page of a page's PDF."""
    told = printed(page, address, whole=False)
    pages = PdfReader(io.BytesIO(told)).pages
    return [one.extract_text().splitlines() for one in pages]


def test_no_row_of_a_race_stands_alone_on_a_page(site_url, page):
    """The last of a table did, below its head, on two of fifteen pages."""
    pages = printed_pages(page, f"{site_url}book/bench.html")
    assert len(pages) > 8
    for lines in pages:
        if lines[0].startswith("speed"):
            rows = [bool(re.match(r"\d+\.\d\d ", line)) for line in lines[1:3]]
            assert all(rows), lines[:4]


def test_no_note_stands_alone_on_a_page(site_url, page):
    """The second of two did."""
    pages = printed_pages(page, f"{site_url}book/changelog.html")
    assert "Notes" in [line.strip() for line in pages[-1]]


def test_no_verdict_of_the_claims_stands_alone_on_paper(site_url, page):
    """Two did, where their tables began on the next page."""
    pages = printed_pages(page, f"{site_url}book/claims.html")
    firsts = {"Wrong": "000-053", "Contradicts another source": "000-026"}
    for title, first in firsts.items():
        (lines,) = [one for one in pages if title in one]
        assert any(line.startswith(first) for line in lines), lines


def test_how_a_function_is_called_is_whole_on_paper(site_url, page):
    """One began on a page and ended on the next, above what is said of it."""
    page.goto(f"{site_url}book/api.html")
    page.emulate_media(media="print")
    kept = page.locator("div.api-call").evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e))"
        ".map((s) => s.breakInside + s.breakAfter)"
    )
    assert {*kept} == {"avoidavoid"}


@pytest.mark.parametrize(
    "name", ["looking_inside", "notation", "glossary", "changelog"]
)
def test_the_last_page_is_not_nearly_blank(site_url, page, name):
    """One had nothing on it, and others a few lines."""
    paper = printed(page, f"{site_url}book/{name}.html", whole=False)
    pages = PdfReader(io.BytesIO(paper)).pages
    lines = [one.extract_text().count("\n") for one in pages]
    assert lines[-1] > max(lines) / 4


def test_a_heading_is_on_one_page(site_url, page):
    """The words of one were parted."""
    page.goto(f"{site_url}book/conclusions.html")
    page.emulate_media(media="print")
    heads = page.locator("article :is(h1, h2, h3, h4)").evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e))"
        ".map(({ breakInside, breakAfter }) => breakInside + breakAfter)"
    )
    assert len(heads) > 10 and {*heads} == {"avoidavoid"}


def test_a_short_example_is_whole_on_paper(site_url, page):
    """Four lines of nine were alone on the last page."""
    page.goto(f"{site_url}book/notation.html")
    page.emulate_media(media="print")
    examples = page.locator("article div.highlight pre").evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e).breakInside)"
    )
    assert len(examples) > 4 and {*examples} == {"avoid"}
    page.emulate_media(media="screen")
    assert page.locator("pre.few-lines").count() == 0


def test_strips_are_black_on_paper(site_url, page):
    """No link leads anywhere there; those of more rows were blue."""
    page.goto(f"{site_url}book/doctor.html")
    page.emulate_media(media="print")
    strips = page.locator("article .conclusion-strip:visible").evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e).color)"
    )
    text = page.locator("article")
    assert {*strips} == {text.evaluate("(e) => getComputedStyle(e).color")}
