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
    verb = "remains" if now.remain == 1 else "remain"
    told = f"{now.remain} of {len(MECHANISMS)} {verb} at {mine.n:,} tokens"
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
    expect(lab.locator(".lab-detail")).to_contain_text("flash remains. 53.1%")


def test_at_the_start_nothing_is_asked(open_lab):
    """A question, and the answer to it, stood beside a lab put back."""
    lab = open_lab()
    lab.get_by_role("button", name="1. nothing may change").click()
    expect(lab.locator(".lab-insight")).to_contain_text("1 of 11 remains.")
    expect(lab.locator(".lab-asked")).to_be_visible()
    lab.get_by_role("button", name="Back to the start").click()
    expect(lab.locator(".lab-asked")).to_be_hidden()


def test_on_a_phone_why_one_drops_out_is_in_sight(open_lab):
    """The column of bytes was cut off there, and the last one out of sight."""
    lab = open_lab(viewport={"width": 360, "height": 740})
    scrolls = lab.locator(".lab-scroll").first
    assert scrolls.evaluate("(e) => e.scrollWidth - e.clientWidth") <= 1
    for row in lab.locator("tbody tr").all():
        cells = row.locator("th, td").all()
        _, *numbers, why = (one.bounding_box() for one in cells)
        assert why["x"] + why["width"] <= 340
        assert why["y"] + why["height"] <= numbers[0]["y"] + 1
        assert len({round(one["y"]) for one in numbers}) == 1
