"""On a phone a table is as wide as the page, or says that it scrolls."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tools.build.notebooks import files_in_contents

ROOT = Path(__file__).parents[2]
PAGES = [f"{name}.html" for name in files_in_contents(ROOT)]
PHONE = {"width": 360, "height": 740}
LITTLE = 12  # pixels: what hides no more looks as if nothing was hidden

# Of every table that can be seen, with what is folded unfolded: how far it
# sticks out, of a box that scrolls or of the page; and how that box says so.
TABLES = """() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  dispatchEvent(new Event("resize"));
  const width = document.documentElement.clientWidth;
  return [...document.querySelectorAll("table")].map((table) => {
    const { width: wide, right } = table.getBoundingClientRect();
    if (!wide || !table.checkVisibility()) return null;
    let box = table.parentElement;
    while (box && !/auto|scroll/.test(getComputedStyle(box).overflowX))
      box = box.parentElement;
    const over = box ? box.scrollWidth - box.clientWidth
      : Math.round(right - width);
    return { over, words: table.classList.contains("table"),
      text: table.textContent.trim().slice(0, 50),
      reached: box?.tabIndex === 0,
      lab: !!box?.closest(".selfattn-lab"),
      called: box?.getAttribute("aria-label") ?? "",
      shaded: !!box && (box.closest(".selfattn-lab") !== null
        || getComputedStyle(box).backgroundImage !== "none") };
  }).filter((one) => one);
}"""
OVER = """() => document.documentElement.scrollWidth
  - document.documentElement.clientWidth"""


# Of a printed table's rows: how far the text of a cell is from the next one's.
GAPS = """() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  const box = (cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getBoundingClientRect();
  };
  return [...document.querySelectorAll("table.printed.lines tbody tr")]
    .flatMap((row) => {
      const boxes = [...row.cells].map(box);
      return boxes.slice(1).map((one, n) => [one, boxes[n]])
        .filter(([one, other]) => one.width && other.width
          && Math.abs(one.top - other.top) < 4)
        .map(([one, other]) => [one.left - other.right, row.textContent]);
    });
}"""


def amiss(table):
    """Whether it hides something, and does not say so."""
    if table["over"] <= 0:
        return False
    told = table["reached"] and table["called"] and table["shaded"]
    little = table["over"] < LITTLE and not table["lab"]
    return table["words"] or little or not told


@pytest.mark.parametrize("name", ["cost", "efficient/linear"])
def test_no_two_columns_of_a_printed_table_touch_on_a_phone(
    site_url, new_page, name
):
    """Three pixels parted a name from eight digits."""
    page = new_page(viewport=PHONE)
    page.goto(f"{site_url}book/{name}.html")
    gaps = page.evaluate(GAPS)
    assert len(gaps) > 20
    assert [row for gap, row in gaps if gap < 5] == []


def test_of_heads_switched_off_a_phone_shows_the_last_column(
    site_url, new_page
):
    """What both of them cost stood behind the edge."""
    page = new_page(viewport=PHONE)
    page.goto(f"{site_url}book/looking_inside.html")
    table = page.locator("table.printed", has_text="less 2.3")
    last = table.locator("tbody tr").first.locator("td").last
    box, inside = last.bounding_box(), table.locator("..").bounding_box()
    assert box["x"] + box["width"] <= inside["x"] + inside["width"] + 1


@pytest.mark.parametrize("address", [*PAGES, "search.html"])
def test_a_phone_shows_a_table_whole_or_says_that_it_scrolls(
    site_url, new_page, address
):
    page = new_page(viewport=PHONE)
    page.goto(site_url + address)
    for place in page.locator(".lab-place[data-script]").all():
        place.scroll_into_view_if_needed()
        expect(page.locator(".lab-runs")).to_have_count(1)
    wrong = [table for table in page.evaluate(TABLES) if amiss(table)]
    assert wrong == []
    assert page.evaluate(OVER) <= 0


@pytest.mark.parametrize("width", [1280, 657])
def test_numbers_of_corruptions_stand_on_the_right(site_url, new_page, width):
    """As in every other table; on a phone a row is a paragraph."""
    page = new_page(viewport={"width": width, "height": 900})
    page.goto(f"{site_url}book/how-it-is-verified.html")
    cells = page.locator("table.corruptions :is(th, td):not(:first-child)")
    assert cells.count() > 100
    found = "(all) => all.map((e) => getComputedStyle(e).textAlign)"
    assert {*cells.evaluate_all(found)} == {"right"}


@pytest.mark.parametrize("name", ["flash", "sparse", "window", "linformer"])
def test_the_name_over_a_table_of_properties_is_one_line(
    site_url, new_page, name
):
    """Beside it there is an empty place, over which it goes on."""
    page = new_page(viewport=PHONE)
    page.goto(f"{site_url}book/efficient/{name}.html")
    head = page.locator("table.table th").first
    assert head.evaluate("(th) => th.getBoundingClientRect().height") < 40
