"""The lab on the scale on its page, driven in a real browser."""

import pytest
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.scaling import ScalingLab, counts

ADDRESS = "book/scaling.html"

# Every number and every bar of the lab, as a reader finds them.
SHOWN = """(root) => {
  const [above, below] = [...root.querySelectorAll(".lab-plane svg")]
    .map((svg) => [...svg.querySelectorAll(".lab-column")]
      .map((bar) => Number(bar.getAttribute("height")) / 120));
  const table = [...root.querySelectorAll("tbody td")]
    .map((cell) => Number(cell.textContent));
  return { above, below, table,
    caption: root.querySelector("caption").textContent };
}"""


def assert_shows(lab, **changed):
    """Bars and numbers are those that the package computes."""
    mine = ScalingLab(**changed)
    row, shown = mine.row(), lab.evaluate(SHOWN)
    half = 0.5001e-3  # what rounding to three places may take
    numbers = [row.deviation, row.peak, row.entropy, row.slope]
    assert shown["table"] == pytest.approx(numbers, abs=half)
    # Heights are written in hundredths of one of the picture's 120 units.
    bars = [n / 64 for n in counts(row.scaled)]
    assert shown["above"] == pytest.approx(bars, abs=1e-4)
    assert shown["below"] == pytest.approx(row.weights.tolist(), abs=1e-4)
    many = "feature" if mine.d_k == 1 else "features"
    start = f"Query {mine.query + 1}, {mine.d_k} {many}"
    assert shown["caption"].startswith(start)


def test_the_start_is_what_the_package_computes(open_lab):
    assert_shows(open_lab())


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    for d_k in (128, 256, 512, 1024):
        control(lab, "d_k").press("ArrowRight")
        assert_shows(lab, d_k=d_k)
    control(lab, "divisor").press("ArrowUp")
    assert_shows(lab, d_k=1024, divisor="none")
    control(lab, "query").press("ArrowRight")
    assert_shows(lab, d_k=1024, divisor="none", query=1)
    control(lab, "d_k").press("Home")
    assert_shows(lab, d_k=1, divisor="none", query=1)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_numbers_are_told_where_the_pointer_is(open_lab):
    lab = open_lab()
    weights = ScalingLab().row().weights
    scores = ScalingLab().row().scaled
    lab.locator(".lab-plane").nth(1).locator(".lab-reach").nth(9).hover()
    expect(lab.locator(".lab-detail")).to_contain_text(
        f"weight {weights[9]:.3f}"
    )
    lab.locator(".lab-plane").nth(0).locator(".lab-reach").nth(11).hover()
    among = ((scores >= 0) & (scores < 1)).sum().item()
    expect(lab.locator(".lab-detail")).to_have_text(
        f"Scores from 0 to 1: {among} of 64."
    )


def test_a_setting_travels_by_its_link(open_lab):
    lab = open_lab("#lab=scaling&d_k=256&divisor=none&query=6")
    assert_shows(lab, d_k=256, divisor="none", query=6)
    expect(lab.get_by_role("alert")).to_be_hidden()
    lab = open_lab("#lab=scaling&d_k=200")
    assert_shows(lab)
    expect(lab.get_by_role("alert")).to_contain_text("d_k must be one of")
