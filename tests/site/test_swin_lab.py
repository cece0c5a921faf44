"""The lab on Swin on its page, driven in a real browser."""

from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.swin import SwinLab

ADDRESS = "book/efficient/swin.html"

# Every token, every number and every border of the lab, as a reader finds
# them.
SHOWN = """(root) => {
  const layers = (cell) => {
    if (cell.getAttribute("fill").includes("query")) return 0;
    return Number(cell.nextSibling.textContent) || -1;
  };
  const after = [...root.querySelectorAll(".lab-sorted")].map(layers);
  const numbers = [...root.querySelectorAll("tbody td")]
    .map((cell) => parseInt(cell.textContent.replace(/,/g, "")));
  const walls = root.querySelector("path.lab-query-line")
    .getAttribute("d").split("M").length - 2;
  const caption = root.querySelector("figcaption").textContent;
  return { after, numbers, walls, caption };
}"""


def assert_shows(lab, **changed):
    """Tokens and numbers are those that the package computes."""
    mine = SwinLab(**changed)
    now, shown = mine.state(), lab.evaluate(SHOWN)
    assert shown["after"] == now.after
    heard = sum(layer >= 0 for layer in now.after)
    assert shown["numbers"] == [
        heard,
        now.touching,
        now.met,
        now.pairs,
        now.full,
    ]
    own = now.windows
    beside = sum(own[i] != own[i - 1] for i in range(72) if i % 12)
    below = sum(own[i] != own[i - 12] for i in range(12, 72))
    assert shown["walls"] == beside + below
    assert shown["caption"].endswith(f"of layer {mine.layers}")


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    assert_shows(lab)
    control(lab, "window").press("Home")
    control(lab, "layers").press("End")
    control(lab, "row").press("End")
    control(lab, "column").press("ArrowRight")
    state = {"window": 2, "layers": 6, "row": 5, "column": 3}
    assert_shows(lab, **state)
    control(lab, "masked").press("Space")
    assert_shows(lab, **state, masked=False)
    control(lab, "shifted").press("Space")
    assert_shows(lab, **state, masked=False, shifted=False)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_a_large_number_has_its_comma_as_in_other_labs(open_lab):
    lab = open_lab()
    full = f"{SwinLab().state().full:,}"
    assert "," in full
    expect(lab.locator("tbody td").last).to_have_text(full)


def test_the_tasks_and_the_tokens_answer_to_the_mouse(open_lab):
    lab = open_lab()
    lab.get_by_role("button", name="4. touching at a corner").click()
    assert_shows(lab, column=3)
    lab.locator(".lab-sorted").nth(13).click()
    assert_shows(lab, row=1, column=1)
    expect(lab.locator(".lab-detail")).to_contain_text("the token that hears")
