"""The lab on windows on its page, driven in a real browser."""

from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.window import WindowLab

ADDRESS = "book/efficient/window.html"

# Every square and every number of the lab, as a reader finds them.
SHOWN = """(root) => {
  const cells = [...root.querySelectorAll(".lab-column")]
    .filter((cell) => cell.getAttribute("display") !== "none")
    .map((cell) => cell.getAttribute("fill-opacity") === "1");
  const numbers = [...root.querySelectorAll("tbody td")]
    .map((cell) => Number(cell.textContent.replace(/,/g, "")));
  const caption = root.querySelector("figcaption").textContent;
  return { cells, numbers, caption };
}"""


def assert_shows(lab, **changed):
    """Squares and numbers are those that the package computes."""
    mine = WindowLab(**changed)
    now, shown = mine.state(), lab.evaluate(SHOWN)
    assert shown["cells"] == [cell for row in now.heard for cell in row]
    many = sum(now.heard[-1])
    assert shown["numbers"] == [many, now.pairs, now.full, now.kept]
    assert shown["caption"].startswith(f"Token {mine.token + 1},")


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    assert_shows(lab)
    control(lab, "window").press("ArrowRight")
    control(lab, "layers").press("End")
    control(lab, "global_tokens").press("ArrowRight")
    control(lab, "token").press("ArrowLeft")
    state = {"window": 5, "layers": 6, "global_tokens": 1, "token": 1}
    assert_shows(lab, **state)
    control(lab, "causal").press("Space")
    control(lab, "full_last").press("Space")
    assert_shows(lab, **state, causal=False, full_last=True)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_the_tasks_and_the_squares_answer_to_the_mouse(open_lab):
    lab = open_lab()
    lab.get_by_role("button", name="3. a global token").click()
    state = {"layers": 2, "causal": False, "global_tokens": 1}
    assert_shows(lab, **state, token=8)
    lab.locator(".lab-column").nth(16 + 3).click()
    assert_shows(lab, **state, token=3)
    expect(lab.locator(".lab-detail")).to_have_text(
        "Token 4 can have heard token 4 after layer 1."
    )
