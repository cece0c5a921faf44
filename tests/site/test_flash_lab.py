"""The lab on tiles on its page, driven in a real browser."""

import re

import pytest
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.flash import FlashLab

ADDRESS = "book/efficient/flash.html"

# Every bar and every number of the lab, as a reader finds them.
SHOWN = """(root) => {
  const bars = [...root.querySelectorAll(".lab-column")]
    .map((bar) => Number(bar.getAttribute("height")) / 110);
  const table = [...root.querySelectorAll("tbody td")]
    .map((cell) => cell.textContent.replaceAll("−", "-"));
  const caption = root.querySelector("figcaption").textContent;
  return { bars, table, caption };
}"""


def assert_shows(lab, **changed):
    """Bars and numbers are those that the package computes."""
    mine = FlashLab(**changed)
    now, shown = mine.state(), lab.evaluate(SHOWN)
    # Heights are written in hundredths of one of the picture's 110 units.
    assert shown["bars"] == pytest.approx(now.powers, abs=1e-4)
    m, *numbers = shown["table"]
    if now.m is None:
        assert (m, numbers[-1]) == ("-∞", "none yet")
    else:
        told = [float(x) for x in re.findall(r"-?\d+\.\d+", str(numbers))]
        mine_too = [now.total, *now.summed, *now.output]
        assert float(m) == pytest.approx(now.m, abs=0.0501)
        assert told == pytest.approx(mine_too, abs=0.5001e-3)
    assert shown["caption"].endswith(f"{mine.read} read")


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    assert_shows(lab, read=2)
    for read in (3, 4):
        control(lab, "read").press("ArrowRight")
        assert_shows(lab, read=read)
    control(lab, "tiles").press("ArrowRight")
    assert_shows(lab, read=4, tiles=8)
    control(lab, "position").press("ArrowLeft")
    assert_shows(lab, read=4, tiles=8, position=6)
    control(lab, "position").press("Home")
    assert_shows(lab, read=4, tiles=8, position=0)
    control(lab, "scores").press("ArrowDown")
    state = {"read": 4, "tiles": 8, "position": 0, "scores": "loud last"}
    assert_shows(lab, **state)
    control(lab, "tiles").press("Home")  # fewer tiles than were read
    assert_shows(lab, **state | {"tiles": 1, "read": 1})
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab, read=2)


def test_the_tasks_set_the_lab_by_mouse(open_lab):
    lab = open_lab()
    lab.get_by_role("button", name="2. loud last").click()
    assert_shows(lab, scores="loud last", read=4)
    lab.locator(".lab-reach").nth(7).hover()
    expect(lab.locator(".lab-detail")).to_have_text(
        "Key 8: score 6.0, counts 1.000."
    )
    lab.get_by_role("button", name="4. causal").click()
    assert_shows(lab, position=3, read=4)
    lab.locator(".lab-reach").nth(7).hover()
    expect(lab.locator(".lab-detail")).to_contain_text("hidden")
