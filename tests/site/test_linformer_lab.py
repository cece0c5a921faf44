"""The lab on Linformer on its page, driven in a real browser."""

import pytest
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.linformer import LinformerLab

ADDRESS = "book/efficient/linformer.html"

# Every bar and every number of the lab, as a reader finds them.
SHOWN = """(root) => {
  const high = (bar) => Number(bar.getAttribute("height"));
  const bars = (name) => [...root.querySelectorAll(name)].map(high);
  const numbers = [...root.querySelectorAll("tbody td")]
    .map((cell) => parseFloat(cell.textContent.replace("−", "-")));
  const caption = root.querySelector("figcaption").textContent;
  const bars_of = [bars(".lab-of-weights"), bars(".lab-of-stands")];
  return { bars_of, numbers, caption };
}"""


def assert_shows(lab, **changed):
    """Bars and numbers are those that the package computes."""
    mine = LinformerLab(**changed)
    now, shown = mine.seen(), lab.evaluate(SHOWN)
    rows = [now.weights, [abs(x) for x in now.stands]]
    most = max(map(max, rows))
    for row, bars in zip(rows, shown["bars_of"], strict=True):
        heights = [max(70 * x / most, 0.8) for x in row]
        assert bars == pytest.approx(heights, abs=0.01)
    numbers = [
        100 * now.weights[now.best],
        100 * now.stands[now.best],
        100 * now.later,
    ]
    assert shown["numbers"][:3] == pytest.approx(numbers, abs=0.51)
    assert shown["numbers"][3] == pytest.approx(now.off, abs=0.0051)
    assert shown["numbers"][4] == 16 * mine.mixtures
    assert shown["caption"] == f"Token {mine.token + 1} asks"


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    assert_shows(lab)
    control(lab, "mixtures").press("End")
    control(lab, "draw").press("ArrowRight")
    control(lab, "token").press("ArrowLeft")
    control(lab, "length").press("End")
    control(lab, "last").press("Home")
    state = {"mixtures": 16, "draw": 2, "token": 8, "length": 12.0, "last": 0}
    assert_shows(lab, **state)
    control(lab, "kind").select_option("random")
    control(lab, "text").select_option("neighbours alike")
    state |= {"kind": "random", "text": "neighbours alike"}
    assert_shows(lab, **state)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_the_tasks_and_the_bars_answer_to_the_mouse(open_lab):
    lab = open_lab()
    lab.get_by_role("button", name="3. sharper").click()
    assert_shows(lab, length=12.0)
    lab.locator(".lab-of-weights").nth(4).click(force=True)
    assert_shows(lab, length=12.0, token=4)
    expect(lab.locator(".lab-detail")).to_contain_text("which asks")
