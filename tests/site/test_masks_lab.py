"""The mask laboratory on its page, driven in a real browser."""

import pytest
import torch
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.masks import MasksLab

ADDRESS = "book/masks.html"

# What the pictures show, by their own pixels: a cell is dark or it is not.
SHOWN = """(root) => [...root.querySelectorAll("canvas")].map((canvas) => {
  const values = Object.fromEntries([...root.querySelectorAll(
    "[data-setting]")].map((e) => [e.dataset.setting, Number(e.value)]));
  const { n, n_q } = values;
  const side = canvas.width / n;
  const pen = canvas.getContext("2d");
  return Array.from({ length: n_q }, (_, i) => Array.from({ length: n },
    (_, j) => pen.getImageData(
      (j + 0.2) * side, (i + 0.2) * side, 1, 1).data[3] > 0));
})"""


def assert_shows(lab, **changed):
    """The five tables and the sentences are those of these settings."""
    mine = MasksLab(**changed)
    keep = mine.keep()
    mask, weights, is_kept, blocked, added, ones = lab.evaluate(SHOWN)
    assert mask == is_kept == ones == keep.tolist()
    assert blocked == added == (~keep).tolist()
    # A weight too small for a shade is no shade.
    dark = torch.tensor(weights)
    assert not (dark & ~keep).any()
    assert (dark | (mine.weights() < 0.01)).logical_or(~keep).all()
    n_empty = (~keep.any(dim=-1)).sum().item()
    note = lab.locator(".lab-note, .lab-complaint:not([role])")
    expect(note).to_contain_text("Empty:" if n_empty else "Every query may")


def test_the_start_is_the_packages_causal_mask(open_lab):
    lab = open_lab()
    assert_shows(lab)
    expect(lab.locator(".lab-call")).to_have_count(4)
    expect(lab.locator(".lab-call").first).to_contain_text("causal=True")


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    control(lab, "n").press("ArrowRight")  # the queries go along
    assert_shows(lab, n=9, n_q=9)
    control(lab, "n_q").press("ArrowLeft")
    assert_shows(lab, n=9, n_q=8)
    control(lab, "n").press("ArrowLeft")  # now they do not, but are equal
    control(lab, "n_q").press("ArrowLeft")
    assert_shows(lab, n=8, n_q=7)
    control(lab, "alignment").press("ArrowDown")
    now = {"n": 8, "n_q": 7, "alignment": "first"}
    assert_shows(lab, **now)
    control(lab, "padded").press("ArrowRight")
    assert_shows(lab, **now, padded=1)
    control(lab, "left").press("Space")
    now |= {"padded": 1, "left": True}
    assert_shows(lab, **now)
    for kind in ("prefix", "window", "block", "documents"):
        control(lab, "kind").press("ArrowDown")
        assert_shows(lab, **now, kind=kind)
    control(lab, "size").press("ArrowRight")
    control(lab, "causal").press("Space")
    now |= {"kind": "documents", "size": 4, "causal": True}
    assert_shows(lab, **now)
    control(lab, "i").press("ArrowRight")
    control(lab, "j").press("End")
    lab.get_by_role("button", name="Change this pair").press("Enter")
    assert_shows(lab, **now, i=1, j=7, flipped=[[1, 7]])
    expect(lab.locator(".lab-detail")).to_contain_text(
        "Query 1, key 7: keep True, block False, added 0, 0/1 1; weight"
    )
    lab.get_by_role("button", name="Undo the drawing").press("Enter")
    assert_shows(lab, **now)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_a_mask_is_drawn_with_the_mouse(open_lab):
    lab = open_lab()
    canvas = lab.locator("canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    side = box["width"] / 8
    mouse = lab.page.mouse
    x, y = box["x"] + 2.5 * side, box["y"] + 0.5 * side
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + 2 * side, y, steps=9)  # over three cells of the future
    mouse.up()
    mouse.move(x + 3 * side, y)
    cells = [[0, 2], [0, 3], [0, 4]]
    assert_shows(lab, flipped=cells)
    expect(lab.locator(".lab-call").nth(1)).to_contain_text(
        "keep[0, [2, 3, 4]] ^= True"
    )


def test_a_drawing_travels_by_its_link(open_lab):
    lab = open_lab("#lab=masks&kind=none&flipped=1.2,0.3&padded=2&left=true")
    assert_shows(
        lab, kind="none", flipped=[[0, 3], [1, 2]], padded=2, left=True
    )


# How much of the first picture is dark, of all its pixels.
DARK = """(root) => {
  const { width, height } = root.querySelector("canvas");
  const { data } = root.querySelector("canvas").getContext("2d")
    .getImageData(0, 0, width, height);
  let dark = 0;
  for (let at = 3; at < data.length; at += 4) dark += data[at] > 40;
  return dark / (width * height);
}"""


def test_a_large_mask_of_empty_rows_does_not_look_like_one_that_sees(open_lab):
    """Each of its 128 rows was struck out, which made half of it dark."""
    lab = open_lab("#lab=masks&kind=none&n=128&n_q=128&padded=128")
    expect(lab.locator(".lab-insight")).to_contain_text("0 of 16384 pairs")
    assert 0 < lab.evaluate(DARK) < 0.05
    lab.page.evaluate("location.hash = 'lab=masks&kind=none&n=8&padded=8'")
    expect(lab.locator(".lab-insight")).to_contain_text("0 of 64 pairs")
    assert lab.evaluate(DARK) > 0.04  # a line through each row, and dots


LETTERS = """(root) => [...root.querySelectorAll(".lab-small canvas")].map(
  (canvas) => {
    const pen = canvas.getContext("2d");
    const shown = canvas.getBoundingClientRect().width / canvas.width;
    return [parseFloat(pen.font) * shown,
      (canvas.width / 8 - 2) / pen.measureText("−∞").width];
  })"""


@pytest.mark.parametrize("width", [1280, 360])
def test_letters_of_the_small_tables_can_be_read(open_lab, width):
    """Minus infinity was squeezed into a cell at half its width."""
    lab = open_lab(viewport={"width": width, "height": 900})
    for size, squeezed in lab.evaluate(LETTERS):
        assert size >= 12
        assert squeezed > 0.7
