"""The lab on sparse patterns on its page, driven in a real browser."""

from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.sparse import N, SparseLab

ADDRESS = "book/efficient/sparse.html"

# Every square and every number of the lab, as a reader finds them.
SHOWN = """(root) => {
  const cells = [...root.querySelectorAll(".lab-column")]
    .map((cell) => Number(cell.getAttribute("fill-opacity")));
  const dashed = [...root.querySelectorAll("[stroke-dasharray='3 2']")]
    .filter((leg) => leg.getAttribute("display") !== "none")
    .map((leg) => ["y", "x"]
      .map((at) => (Number(leg.getAttribute(at)) - 22) / 20));
  const numbers = [...root.querySelectorAll("tbody td")]
    .map((cell) => Number(cell.textContent));
  return { cells, dashed, numbers };
}"""


def assert_shows(lab, **changed):
    """Squares, ways and numbers are those that the package computes."""
    mine = SparseLab(**changed)
    now, shown = mine.state(), lab.evaluate(SHOWN)
    expected = [
        [0.08, 1, 0.25][now.steps[j]]
        if i == mine.query
        else 0.45 if now.seen[i][j] else 0.08
        for i in range(N)
        for j in range(N)
    ]  # fmt: skip
    assert shown["cells"] == expected
    legs = [
        leg
        for m in now.ways
        if now.steps[mine.key] == 2
        for leg in ([mine.query, m], [m, mine.key])
    ]
    assert shown["dashed"] == legs
    counted = [now.steps.count(1), now.steps.count(2), len(now.ways)]
    assert shown["numbers"] == [*counted, now.pairs, now.full]


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    assert_shows(lab)
    control(lab, "pattern").press("ArrowDown")
    control(lab, "stride").press("ArrowRight")
    control(lab, "query").press("ArrowLeft")
    control(lab, "key").press("End")
    state = {"pattern": "fixed", "stride": 5, "query": 14, "key": 15}
    assert_shows(lab, **state)
    control(lab, "causal").press("Space")
    assert_shows(lab, **state, causal=False)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_the_tasks_and_the_squares_answer_to_the_mouse(open_lab):
    lab = open_lab()
    lab.get_by_role("button", name="4. fixed").click()
    assert_shows(lab, pattern="fixed")
    lab.locator(".lab-column").nth(13 * N + 4).click()
    assert_shows(lab, pattern="fixed", query=13, key=4)
    expect(lab.locator(".lab-detail")).to_have_text(
        "Query 14, key 5: not seen, but reached in two steps."
    )
