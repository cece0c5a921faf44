"""The lab on blocks on its page, driven in a real browser."""

from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.blocks import HEARD, BlocksLab

ADDRESS = "book/blocks.html"

# Every cell of the table, and every row of the two others.
SHOWN = """(root) => {
  const texts = (table) => Object.fromEntries([...table.tBodies[0].rows]
    .map((row) => [...row.cells].map((cell) => cell.textContent)));
  const [heat, shapes, sizes] = root.querySelectorAll("table");
  return {
    cells: [...heat.tBodies[0].rows].map((row) =>
      [...row.cells].slice(1).map((cell) => cell.textContent)),
    names: [...heat.tHead.rows[0].cells].slice(1).map((c) => c.textContent),
    shapes: texts(shapes), sizes: texts(sizes),
  };
}"""


def assert_shows(lab, **changed):
    """All that the lab shows is what the package computes."""
    mine = BlocksLab(**changed)
    now, shown = mine.seen(), lab.evaluate(SHOWN)
    heard = [[cell != "·" for cell in row] for row in shown["cells"]]
    assert heard == [[x > HEARD for x in row] for row in now.moves]
    leaks = sum(cell == "!" for row in shown["cells"] for cell in row)
    assert leaks == now.future + now.padding
    assert shown["names"] == mine.changed()
    shapes = {k: str(tuple(v)) for k, v in now.shapes.items()}
    assert {k: v for k, v in shown["shapes"].items() if k} == shapes
    sizes = {k: f"{v:,}" for k, v in now.parameters.items()}
    assert shown["sizes"] == sizes


def test_the_start_is_what_the_package_computes(open_lab):
    assert_shows(open_lab())


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    control(lab, "norm").press("ArrowDown")
    assert_shows(lab, norm="post")
    for name in ("feed_forward", "causal", "mask_source", "mask_memory"):
        control(lab, name).press("Space")
    off = dict.fromkeys(
        ("feed_forward", "causal", "mask_source", "mask_memory"), False
    )
    assert_shows(lab, norm="post", **off)
    control(lab, "cross").press("Space")
    assert_shows(lab, norm="post", cross=False, **off)
    control(lab, "m").press("Home")
    control(lab, "n").press("End")
    control(lab, "d_model").press("End")
    control(lab, "n_heads").press("Home")
    sizes = {"m": 1, "padded": 0, "n": 5, "d_model": 12, "n_heads": 1}
    assert_shows(lab, norm="post", cross=False, **off, **sizes)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    control(lab, "padded").press("ArrowRight")
    assert_shows(lab, padded=2)


def test_every_control_answers_to_the_mouse(open_lab):
    lab = open_lab()
    control(lab, "norm").select_option(label="none")
    for name in ("feed_forward", "cross", "causal"):
        control(lab, name).uncheck()
    control(lab, "n").click(position={"x": 4, "y": 8})
    off = {"feed_forward": False, "cross": False, "causal": False}
    assert_shows(lab, norm="none", n=1, **off)


def test_a_cell_tells_how_far_the_output_moves(open_lab):
    lab = open_lab("#lab=blocks&causal=false")
    moved = BlocksLab(causal=False).seen().moves
    lab.locator(".lab-heat tbody td").nth(5).hover()
    expect(lab.locator(".lab-detail")).to_contain_text(
        f"the output at <s> moves by {moved[0][5]:.3f}. It should not: a leak"
    )
    lab.locator(".lab-heat tbody td").nth(3).hover()
    expect(lab.locator(".lab-detail")).to_contain_text("does not move")


def test_a_setting_travels_by_its_link(open_lab):
    assert_shows(
        open_lab("#lab=blocks&m=3&padded=9&cross=false"),
        m=3,
        padded=2,
        cross=False,
    )
