"""Code without the spans that colour nothing looks and reads the same."""

import re

import pytest
from guards import site_files
from plain_code import PLAIN


def test_only_what_has_the_colour_of_all_code_loses_its_span(site):
    sheet = (site / "_static" / "book.css").read_text("utf-8")
    for theme in ("light", "dark"):
        code = rf'html\[data-theme="{theme}"\] \.highlight '
        (ground,) = re.findall(code + r"\{.*color: (\S+) \}", sheet)
        for name in PLAIN:
            told = re.findall(code + rf"\.{name} \{{ (.*) \}}", sheet)
            assert told == [f"color: {ground}"]


def test_no_page_has_such_a_span_and_all_have_others(site):
    for name in ("dot_product", "masks", "api"):
        text = (site / "book" / f"{name}.html").read_text("utf-8")
        assert not re.search(rf'<span class="({"|".join(PLAIN)})">', text)
        assert '<span class="k">' in text


def test_what_code_says_is_left_as_it_was(site):
    page = site_files.parse(site / "book" / "masks.html")
    cells = [pre.get_text() for pre in page.select("div.highlight pre")]
    assert any("from selfattn import attention" in cell for cell in cells)
    for cell in cells:
        assert "</span>" not in cell


def test_no_line_of_a_call_ends_within_an_arrow(new_page, site_url):
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(f"{site_url}book/api.html")
    parted = """() => [...document.querySelectorAll(".api-call .o")].map(
      (mark) => mark.getClientRects().length)"""
    lines = page.evaluate(parted)
    assert len(lines) > 500 and set(lines) == {1}


# How far the words of a fold move when it is opened.
MOVED = """(all) => all.map((fold) => {
  const place = () => {
    const words = [...fold.querySelectorAll("summary > p")]
      .find((e) => e.checkVisibility());
    const range = document.createRange();
    range.selectNodeContents(words);
    const { left, top } = range.getBoundingClientRect();
    return [left, top];
  };
  const [left, top] = place();
  fold.open = !fold.open;
  const [then, there] = place();
  return Math.abs(then - left) + Math.abs(there - top);
})"""


@pytest.mark.parametrize("width", [1280, 360])
def test_the_line_of_folded_code_stays_where_it_is(site_url, new_page, width):
    """Opened, it began 22 pixels further to the right."""
    page = new_page(viewport={"width": width, "height": 900})
    page.goto(f"{site_url}book/scaling.html")
    folds = page.locator("article .cell details.hide.above-input:visible")
    moved = folds.evaluate_all(MOVED)
    assert len(moved) > 3
    assert {*moved} == {0}
