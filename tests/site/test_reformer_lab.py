"""The lab on Reformer on its page, driven in a real browser."""

from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.reformer import ReformerLab

ADDRESS = "book/efficient/reformer.html"

# Every token and every number of the lab, as a reader finds them.
SHOWN = """(root) => {
  const dark = (node) => node.getAttribute("fill-opacity") === "0.9";
  const tokens = [...root.querySelectorAll(".lab-token")].map(dark);
  const sorted = [...root.querySelectorAll(".lab-sorted")]
    .map((cell) => Number(cell.nextSibling.textContent) - 1);
  const numbers = [...root.querySelectorAll("tbody td")]
    .map((cell) => parseInt(cell.textContent));
  const caption = root.querySelector("figcaption").textContent;
  return { tokens, sorted, numbers, caption };
}"""


def assert_shows(lab, **changed):
    """Tokens and numbers are those that the package computes."""
    mine = ReformerLab(**changed)
    now, shown = mine.state(), lab.evaluate(SHOWN)
    dark = [seen or i == mine.token for i, seen in enumerate(now.seen)]
    assert shown["tokens"] == dark
    assert shown["sorted"] == now.order
    percent = int(100 * now.weight + 0.5)
    numbers = [sum(now.seen), now.allowed, percent, now.lost, now.pairs]
    assert shown["numbers"] == numbers
    assert shown["caption"].startswith(f"Token {mine.token + 1} asks")


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    assert_shows(lab)
    control(lab, "buckets").press("End")
    control(lab, "rounds").press("End")
    control(lab, "draw").press("ArrowRight")
    control(lab, "chunk").press("ArrowLeft")
    control(lab, "token").press("ArrowLeft")
    control(lab, "last").press("Home")
    state = {"buckets": 8, "rounds": 4, "draw": 1, "chunk": 8, "token": 8}
    state["last"] = 0
    assert_shows(lab, **state)
    control(lab, "causal").press("Space")
    assert_shows(lab, **state, causal=True)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_the_tasks_and_the_tokens_answer_to_the_mouse(open_lab):
    lab = open_lab()
    lab.get_by_role("button", name="2. eight buckets").click()
    assert_shows(lab, buckets=8)
    lab.locator(".lab-token").nth(1).click()
    assert_shows(lab, buckets=8, token=1)
    expect(lab.locator(".lab-detail")).to_contain_text("it asks.")
