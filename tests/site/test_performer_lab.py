"""The lab on an estimated weight on its page, driven in a real browser."""

import pytest
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.performer import PerformerLab

ADDRESS = "book/efficient/performer.html"

# The dots that are to be seen, and the numbers, as a reader finds them.
SHOWN = r"""(root) => {
  const dots = [...root.querySelectorAll(".lab-drawn:not(.lab-absent)")];
  const [table] = root.querySelectorAll("table");
  return {
    sizes: dots.map((dot) => Number(dot.getAttribute("r"))),
    below: dots.filter((dot) => dot.classList.contains("lab-below")).length,
    numbers: [...table.tBodies[0].rows].map((row) =>
      row.cells[1].textContent.replaceAll("−", "-")),
  };
}"""


def assert_shows(lab, **changed):
    """Dots and numbers are what the package computes."""
    now = PerformerLab(**changed).seen()
    shown = lab.evaluate(SHOWN)
    total = sum(abs(x) for x in now.parts)
    sizes = [1 + 14 * (abs(x) / total) ** 0.5 for x in now.parts]
    assert shown["sizes"] == pytest.approx(sizes, abs=0.00501)
    assert shown["below"] == sum(x < 0 for x in now.parts)
    exact, estimate, *_ = shown["numbers"]
    assert float(exact) == pytest.approx(now.exact, abs=0.000501)
    assert float(estimate) == pytest.approx(now.estimate, abs=0.000501)


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    assert_shows(lab)
    control(lab, "length").press("ArrowRight")
    assert_shows(lab, length=1.0)
    control(lab, "angle").press("ArrowLeft")
    assert_shows(lab, length=1.0, angle=30)
    control(lab, "m").press("ArrowRight")
    state = {"length": 1.0, "angle": 30, "m": 64}
    assert_shows(lab, **state)
    control(lab, "kind").press("ArrowDown")
    state["kind"] = "trigonometric"
    assert_shows(lab, **state)
    control(lab, "orthogonal").press("Space")
    state["orthogonal"] = True
    assert_shows(lab, **state)
    control(lab, "draw").press("ArrowRight")
    assert_shows(lab, **state, draw=2)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_the_tasks_set_the_lab_by_mouse(open_lab):
    lab = open_lab()
    lab.get_by_role("button", name="2. long").click()
    assert_shows(lab, length=2.25, angle=30, m=256)
    lab.get_by_role("button", name="6. at right angles").click()
    assert_shows(lab, m=4, orthogonal=True)
    lab.locator(".lab-drawn").first.hover(force=True)
    expect(lab.locator(".lab-detail")).to_contain_text("Direction 1,")
