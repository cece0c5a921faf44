"""The lab on heads on its page, driven in a real browser."""

import re

import pytest
import torch
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.multihead import MultiheadLab

ADDRESS = "book/multihead.html"

# Every number of the lab, as a reader finds it, and each picture's pixels.
SHOWN = """(root) => {
  const texts = (table) => Object.fromEntries([...table.tBodies[0].rows]
    .map((row) => [row.cells[0].textContent, row.cells[1].textContent]));
  const [heat, shapes, counts] = root.querySelectorAll("table");
  const shown = [...root.querySelectorAll(".lab-words label")]
    .filter((label) => !label.hidden);
  return {
    heat: [...heat.tBodies[0].rows].map((row) =>
      [...row.cells].slice(1).map((cell) => Number(cell.textContent))),
    shapes: texts(shapes), counts: texts(counts),
    keys: shown.map((label) =>
      label.querySelector(".lab-map-keys").textContent),
    maps: shown.map((label) => {
      const canvas = label.querySelector("canvas");
      const { data } = canvas.getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height);
      return [...data].filter((_, i) => i % 4 === 3);
    }),
  };
}"""


def assert_shows(lab, **changed):
    """All that the lab shows is what the package computes."""
    mine = MultiheadLab(**changed)
    shown = lab.evaluate(SHOWN)
    weights = mine.weights()
    heat = torch.tensor(shown["heat"], dtype=torch.float64)
    assert (heat - weights[mine.head]).abs().max() <= 0.5001e-2
    assert len(shown["maps"]) == mine.n_heads
    pixels = torch.tensor(shown["maps"]).view_as(weights) / 255
    assert (pixels - weights).abs().max() <= 0.51 / 255
    group = mine.n_heads // mine.n_kv_heads
    assert shown["keys"] == [
        f"keys {head // group + 1}" for head in range(mine.n_heads)
    ]
    assert shown["shapes"] == {
        name: str(shape) for name, shape in mine.shapes().items()
    }
    counts = {
        name: int(text.replace(",", ""))
        for name, text in shown["counts"].items()
    }
    assert counts["parameters"] == mine.parameters()
    assert counts["bytes of the cache"] == mine.cache_bytes()
    assert counts["the same, unshared"] == mine.cache_bytes() * group
    assert counts["weights"] == weights.numel()


def test_the_start_is_what_the_package_computes(open_lab):
    assert_shows(open_lab())


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    control(lab, "n").press("ArrowRight")
    assert_shows(lab, n=7)
    control(lab, "d_model").press("ArrowLeft")
    assert_shows(lab, n=7, d_model=24)
    control(lab, "n_kv_heads").press("Home")
    assert_shows(lab, n=7, d_model=24, n_kv_heads=1)
    control(lab, "n_heads").press("End")
    now = {"n": 7, "d_model": 24, "n_kv_heads": 1, "n_heads": 12}
    assert_shows(lab, **now)
    control(lab, "head").first.press("ArrowLeft")  # round to the last
    assert_shows(lab, **now, head=11)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_every_control_answers_to_the_mouse(open_lab):
    lab = open_lab()
    for setting, changed in (("n", {"n": 10}), ("n_heads", {"n_heads": 12})):
        box = control(lab, setting).bounding_box()
        control(lab, setting).click(position={"x": box["width"] - 4, "y": 8})
        now = {"n": 10} | changed
        assert_shows(lab, **now, n_kv_heads=now.get("n_heads", 4))
    lab.locator("label", has_text="head 5").click()
    assert_shows(lab, n=10, n_heads=12, n_kv_heads=12, head=4)


def test_heads_keep_keys_of_their_own_up_and_down(open_lab):
    """A reader went to one head and back, and met four heads on one key."""
    lab = open_lab()
    control(lab, "n_heads").press("Home")
    assert_shows(lab, n_heads=1, n_kv_heads=1)
    control(lab, "n_heads").press("End")
    assert_shows(lab, n_heads=12, n_kv_heads=12)
    control(lab, "n_kv_heads").press("ArrowLeft")
    control(lab, "n_heads").press("ArrowLeft")
    assert_shows(lab, n_heads=8, n_kv_heads=4)


@pytest.mark.parametrize("d_model", [12, 64])
def test_only_heads_that_divide_are_offered(open_lab, d_model):
    """Each stop is a layer, and the lab does not become smaller at any."""
    lab = open_lab(f"#lab=multihead&d_model={d_model}&n_heads=1")
    height = 0
    for n_heads in range(1, 13):
        if d_model % n_heads:
            continue
        if n_heads > 1:
            control(lab, "n_heads").press("ArrowRight")
            control(lab, "n_kv_heads").press("End")
        assert_shows(lab, d_model=d_model, n_heads=n_heads, n_kv_heads=n_heads)
        before, height = height, lab.bounding_box()["height"]
        assert height >= before
    control(lab, "n_heads").press("Home")
    assert lab.bounding_box()["height"] >= height


def test_numbers_are_told_on_hover_and_focus(open_lab):
    lab = open_lab()
    detail = lab.locator(".lab-detail")
    weights = MultiheadLab().weights()
    lab.locator(".lab-heat tbody td").nth(1).hover()
    expect(detail).to_have_text(f"the → cat: weight {weights[0, 0, 1]:.3f}.")
    control(lab, "head").nth(1).focus()
    expect(detail).to_contain_text(
        "Head 2, with keys 2, looks most from “the”"
    )
    expect(detail).to_contain_text(f"at “on”: {weights[1].max():.3f}.")


def test_an_answer_says_when_the_lab_has_moved_on(open_lab):
    """It told of two heads while the picture had twelve."""
    lab = open_lab()
    lab.get_by_role("button", name="a second head").click()
    lab.get_by_text("Answer", exact=True).click()
    moved = lab.get_by_text("The lab has moved on")
    expect(lab.get_by_text("A second table")).to_be_visible()
    expect(moved).to_be_hidden()
    control(lab, "n_heads").press("End")
    expect(moved).to_be_visible()
    lab.get_by_role("button", name="a second head").click()
    expect(moved).to_be_hidden()


def test_a_setting_travels_by_its_link(open_lab):
    lab = open_lab()
    control(lab, "n_kv_heads").press("Home")
    lab.page.wait_for_url(re.compile("n_kv_heads=1"))
    fragment = "#" + lab.page.url.partition("#")[2]
    assert_shows(open_lab(fragment), n_kv_heads=1)


def test_letters_of_a_table_of_weights_can_be_read(open_lab):
    """They were of eleven pixels."""
    lab = open_lab()
    sizes = lab.locator(".lab-heat :is(th, td), .lab-map-keys").evaluate_all(
        "(all) => all.map((e) => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert len(sizes) > 40
    assert min(sizes) >= 12
