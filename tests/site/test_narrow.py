"""On a phone what is too wide goes on below, is smaller, or has a bar."""

import pytest
from contrast import contrast
from playwright.sync_api import expect

PHONE = {"width": 360, "height": 740}
LEAST = 9.5  # pixels: no letter of an output is smaller

# Of what scrolls, with all folds open: what it is, and how it says so.
SCROLLS = """() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  dispatchEvent(new Event("resize"));
  const boxes = "pre, .katex-display, .printed-table, "
    + ".pst-scrollable-table-container";
  return [...document.querySelectorAll(`.bd-article :is(${boxes})`)]
    .filter((e) => !e.closest(".lab-place, .katex-mathml")
      && /auto|scroll/.test(getComputedStyle(e).overflowX)
      && e.scrollWidth > e.clientWidth)
    .map((e) => {
      const look = getComputedStyle(e);
      e.scrollLeft = e.scrollWidth;
      return { text: e.textContent.trim().slice(0, 50),
        kind: e.matches(".katex-display") ? "Formula"
          : e.matches("pre") ? e.closest(".cell_output") ? "Output" : "Code"
          : "Table",
        told: [e.tabIndex, e.getAttribute("role"), e.ariaLabel],
        size: look.backgroundSize.split(",")[0],
        room: parseFloat(look.paddingBottom) };
    });
}"""


@pytest.fixture
def narrow(new_page, site_url):
    """Open a page of the book on a phone."""

    def start(name, **options):
        page = new_page(viewport=PHONE, **options)
        page.goto(f"{site_url}book/{name}.html")
        page.evaluate("document.fonts.ready")
        return page

    return start


@pytest.mark.parametrize("name", ["layers", "masks", "positions", "scaling"])
def test_a_formula_is_seen_whole(narrow, name):
    """Of three equations in a line the third was out of sight."""
    page = narrow(name)
    found = page.evaluate(SCROLLS)
    assert [one["text"] for one in found if one["kind"] == "Formula"] == []
    formula = page.locator(".katex-display:has(.formula-gap)").first
    parts = formula.locator(".formula-part")
    edge = page.evaluate("document.documentElement.clientWidth")
    for part in parts.all():
        box = part.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= edge


@pytest.mark.parametrize("name", ["layers", "looking_inside", "notation"])
def test_what_scrolls_says_so_all_the_time(narrow, name):
    """A shade at the edge was all that there was."""
    page = narrow(name)
    found = page.evaluate(SCROLLS)
    assert len(found) > 3
    for one in found:
        told = [0, "group", f"{one['kind']}, scrolls sideways"]
        assert one["told"] == told, one
        share = float(one["size"].split("%")[0])
        assert 20 < share < 100 and one["size"].endswith("4px"), one
        assert one["room"] > 8, one  # the bar covers nothing


def test_the_bar_goes_along(narrow):
    page = narrow("layers")
    code = page.locator("pre.scrolls").first
    code.scroll_into_view_if_needed()
    place = "(e) => getComputedStyle(e).backgroundPositionX.split(',')[0]"
    assert code.evaluate(place) == "0%"
    code.evaluate("(e) => { e.scrollLeft = e.scrollWidth; }")
    page.wait_for_timeout(200)
    assert code.evaluate(place) == "100%"


def test_on_a_wide_screen_there_is_no_bar(site_url, page):
    page.goto(f"{site_url}book/layers.html")
    assert page.locator(".scrolls, [style*='--fit']").count() == 0


@pytest.mark.parametrize(
    ("name", "text", "box"),
    [
        ("layers", "FFN one token on another", "pre"),
        ("looking_inside", "2.2 has", ".printed-table"),
    ],
)
def test_what_is_a_little_too_wide_is_smaller(narrow, name, text, box):
    """The numbers that one should compare were behind the edge."""
    page = narrow(name)
    squeezed = text.split()
    place = page.locator(f".cell_output {box}")
    for word in squeezed:
        place = place.filter(has_text=word)
    place.first.scroll_into_view_if_needed()
    wide, room, letters = place.first.evaluate(
        "(e) => [e.scrollWidth, e.clientWidth, parseFloat(getComputedStyle("
        "e.querySelector('table') ?? e).fontSize)]"
    )
    assert wide <= room
    assert LEAST < letters < 12.8


def test_short_code_is_not_parted(narrow):
    """A line ended behind ``d_model /``."""
    page = narrow("multihead")
    found = page.locator(".bd-article :is(p, li) code.one-line").evaluate_all(
        "(all) => all.filter((e) => e.checkVisibility()"
        " && !e.closest('td, h1, h2, h3') && e.getClientRects().length > 1)"
        ".map((e) => e.textContent)"
    )
    assert found == []


def test_a_head_is_explained_where_one_taps(narrow):
    """The sentence stood 600 pixels below."""
    page = narrow("multihead", has_touch=True)
    for place in page.locator(".lab-place[data-script]").all():
        place.scroll_into_view_if_needed()
    expect(page.locator(".lab-runs")).to_have_count(1)
    lab = page.locator(".lab-place .selfattn-lab")
    cell = lab.locator(".lab-heat td:visible").nth(8)
    cell.scroll_into_view_if_needed()
    cell.tap()
    said = lab.locator(".lab-detail").bounding_box()
    assert 0 < said["y"] < PHONE["height"] - said["height"]


# How dark the darkest shade is, and what becomes of black and white.
MASK = """() => {
  const canvas = document.querySelector(".lab-shades canvas");
  const { data } = canvas.getContext("2d").getImageData(3, 3, 1, 1);
  return [data[3] / 255, getComputedStyle(canvas).filter];
}"""


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_letters_on_a_mask_can_be_read(narrow, scheme):
    """T and 1.00 had a contrast of 3.9 in the dark."""
    page = narrow("masks", color_scheme=scheme)
    for place in page.locator(".lab-place[data-script]").all():
        place.scroll_into_view_if_needed()
    expect(page.locator(".lab-runs")).to_have_count(1)
    shade, turned = page.evaluate(MASK)
    assert 0.3 < shade < 0.6
    turn = 0 if turned == "none" else float(turned[7:-1])

    def grey(light):
        seen = round(255 * (light * (1 - 2 * turn) + turn))
        return f"#{seen:02x}{seen:02x}{seen:02x}"

    assert contrast(grey(0), grey(1 - shade)) >= 4.5


def test_the_next_page_has_its_name_in_a_line(site_url, page):
    page.goto(f"{site_url}book/masks.html")
    for name in page.locator(".prev-next-title").all():
        assert name.bounding_box()["height"] < 30


def test_no_line_goes_through_a_letter_below(site_url, page):
    """Chromium drew it through the k of d_k."""
    page.goto(f"{site_url}book/glossary.html")
    below = page.locator(".bd-article a sub.letter")
    looks = "(all) => all.map((e) => getComputedStyle(e).display)"
    assert {*below.evaluate_all(looks)} == {"inline-block"}


def test_a_glossarys_chapter_is_named_in_one_piece(site_url, page):
    page.goto(f"{site_url}book/glossary.html")
    pieces = page.locator(".glossary-chapter a").evaluate_all(
        "(all) => all.map((e) => e.getClientRects().length)"
    )
    assert len(pieces) > 50 and {*pieces} == {1}
    assert "|i − j|" in page.locator("dl.glossary").inner_text()


def test_contents_that_are_cut_say_so(site_url, new_page):
    """In a low window they ended as if there were no more."""
    page = new_page(viewport={"width": 1280, "height": 600})
    page.goto(f"{site_url}book/multihead.html")
    rail = page.locator(".bd-sidebar-secondary")
    assert rail.evaluate("(e) => e.scrollHeight > e.clientHeight + 20")

    def last_rows():
        box = rail.bounding_box()
        foot = {"x": box["x"], "width": 60, "height": 4}
        foot["y"] = min(600, box["y"] + box["height"]) - 5
        return page.screenshot(clip=foot, animations="disabled")

    shaded = last_rows()
    rail.evaluate("(e) => { e.scrollTop = e.scrollHeight; }")
    page.wait_for_timeout(100)
    assert last_rows() != shaded


def test_the_changelog_has_no_brackets_in_its_headings(site_url, page):
    page.goto(f"{site_url}book/changelog.html")
    heads = page.locator("article h2").all_inner_texts()
    assert heads and not any("[" in head for head in heads)


@pytest.mark.parametrize("name", ["claims", "glossary"])
def test_a_letter_below_stays_with_its_own(name, site_url, new_page):
    """At the end of a line, "Why divide by √d" left its k on the next."""
    for width in (1280, 360):
        page = new_page(viewport={"width": width, "height": 900})
        page.goto(f"{site_url}book/{name}.html")
        lines = page.locator(".bd-article .lowered").evaluate_all(
            "(all) => all.map((e) => e.getClientRects().length)"
        )
        assert lines and {*lines} == {1}
