"""The lab on layers on its page, driven in a real browser."""

import pytest
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.layers import LEAST, LayersLab

ADDRESS = "book/layers.html"
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻−", "0123456789--")

ROWS = """(root) => [...root.querySelectorAll(".lab-blocks tbody tr")]
  .filter((row) => !row.hidden)
  .map((row) => [...row.cells].slice(1).map((cell) => cell.textContent))"""


# How far the text of each cell is from that of the next one.
GAPS = """(root) => [...root.querySelectorAll(".lab-blocks tr")]
  .filter((row) => row.checkVisibility()).flatMap((row) => {
    const boxes = [...row.cells].map((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return range.getBoundingClientRect();
    });
    return boxes.slice(1).map((one, n) => one.left - boxes[n].right);
  })"""


def number(text):
    """What a cell of the table says; None for a dash."""
    if text == "–":
        return None
    if text == "rounding":
        return 0.0
    factor, _, exponent = text.translate(RAISED).partition("·10")
    return float(factor) * 10 ** int(exponent or 0)


def assert_shows(lab, **changed):
    """Every number of the table is the package's, to two digits."""
    found = LayersLab(**changed).trace()
    shown = [[number(text) for text in row] for row in lab.evaluate(ROWS)]
    columns = [
        [x for x in column if x is not None]
        for column in zip(*shown, strict=True)
    ]
    for column, numbers in zip(columns, found, strict=True):
        expected = [x if x > LEAST else 0.0 for x in numbers]
        assert column == pytest.approx(expected, rel=0.051, abs=1e-10)


def test_the_start_is_what_the_package_computes(open_lab):
    assert_shows(open_lab())


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    control(lab, "depth").press("ArrowLeft")
    assert_shows(lab, depth=11)
    control(lab, "norm").press("ArrowDown")
    assert_shows(lab, depth=11, norm="pre")
    control(lab, "residual").press("Space")
    assert_shows(lab, depth=11, norm="pre", residual=True)
    control(lab, "feed_forward").press("Space")
    settings = {"norm": "pre", "residual": True, "feed_forward": True}
    assert_shows(lab, depth=11, **settings)
    control(lab, "draw").press("End")
    assert_shows(lab, depth=11, draw=8, **settings)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_every_control_answers_to_the_mouse(open_lab):
    lab = open_lab()
    control(lab, "residual").check()
    control(lab, "norm").select_option(label="post: after each sum")
    control(lab, "feed_forward").check()
    for name in ("depth", "draw"):
        control(lab, name).click(position={"x": 4, "y": 8})
    settings = {"norm": "post", "residual": True, "feed_forward": True}
    assert_shows(lab, depth=1, draw=1, **settings)


def test_numbers_are_told_on_hover(open_lab):
    lab = open_lab()
    lab.locator(".lab-depth-reach").nth(1).hover()
    expect(lab.locator(".lab-detail")).to_contain_text("After 1 block: size")


def test_a_setting_travels_by_its_link(open_lab):
    fragment = "#lab=layers&depth=5&norm=pre&residual=true"
    lab = open_lab(fragment)
    assert_shows(lab, depth=5, norm="pre", residual=True)
    mended = open_lab("#lab=layers&depth=99")
    assert_shows(mended, depth=12)
    expect(mended.get_by_role("alert")).to_contain_text("between 1 and 12")


def test_the_hint_asks_for_what_has_not_been_done(open_lab):
    lab = open_lab()
    detail = lab.locator(".lab-detail")
    expect(detail).to_contain_text("Switch the residual path on")
    control(lab, "residual").check()
    expect(detail).not_to_contain_text("Switch the residual path on")
    lab = open_lab("#lab=layers&residual=true")
    expect(lab.locator(".lab-detail")).to_contain_text("path off")


def test_on_a_phone_no_two_columns_of_the_table_touch(open_lab):
    """“blocks” and “size” stood three pixels apart, and room was left."""
    lab = open_lab()
    lab.page.set_viewport_size({"width": 360, "height": 740})
    gaps = lab.evaluate(GAPS)
    assert len(gaps) > 20
    assert min(gaps) >= 7
    assert lab.locator(".lab-scroll").evaluate(
        "(box) => box.scrollWidth <= box.clientWidth"
    )
