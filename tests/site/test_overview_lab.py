"""The chooser on its page, driven in a real browser."""

from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.overview import MECHANISMS, OverviewLab

ADDRESS = "book/efficient/overview.html"

START = {"inputs": "far", "error": "two thirds"}  # of the page's lab

# Every row of the lab, as a reader finds it.
SHOWN = """(root) => {
  const table = root.querySelector("table");
  const rows = [...table.tBodies[0].rows].map((row) =>
    [...row.cells].map((cell) => cell.textContent));
  return { rows, caption: table.caption.textContent };
}"""


def assert_shows(lab, **changed):
    """Errors and verdicts are those that the package computes."""
    mine = OverviewLab(**START | changed)
    now, shown = mine.chosen(), lab.evaluate(SHOWN)
    assert len(shown["rows"]) == len(MECHANISMS)
    for row, (_, error, operations, held, why) in zip(
        now.rows, shown["rows"], strict=True
    ):
        assert why == (row.why or "remains")
        assert error == ("–" if row.error is None else f"{row.error:.2f}")
        assert (operations == "–") == (row.operations is None)
        assert (held == "–") == (row.bytes is None)
    told = f"{now.remain} of {len(MECHANISMS)} remain at {mine.n:,} tokens"
    assert shown["caption"] == told


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    assert_shows(lab)
    control(lab, "n").press("ArrowLeft")
    control(lab, "memory").press("ArrowLeft")
    state = {"n": 512, "memory": 512}
    assert_shows(lab, **state)
    control(lab, "causal").press("Space")
    control(lab, "inputs").press("ArrowDown")
    control(lab, "error").press("ArrowDown")
    state |= {"causal": True, "inputs": "near", "error": "a third"}
    assert_shows(lab, **state)
    control(lab, "mask").press("Space")
    assert_shows(lab, **state, mask=True)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_the_tasks_and_the_rows_answer_to_the_mouse(open_lab):
    lab = open_lab()
    lab.get_by_role("button", name="1. nothing may change").click()
    state = {"n": 8192, "causal": True, "error": "none", "memory": 512}
    state["inputs"] = "normal"
    assert_shows(lab, **state)
    lab.locator("tbody tr").nth(1).hover()
    expect(lab.locator(".lab-detail")).to_contain_text("flash remains. 53.1 %")
