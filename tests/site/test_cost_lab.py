"""The planner of a layer's cost on its page, driven in a real browser."""

import math

import pytest
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.cost import GPUS, LENGTHS, MECHANISMS, CostLab, plan

ADDRESS = "book/cost.html"
STEPS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}

# Both tables, row by row, and where the lines and the mark are drawn.
SHOWN = """(root) => {
  const rows = (table) => [...table.tBodies[0].rows]
    .map((row) => [...row.cells].map((cell) => cell.textContent));
  const [costs, gpus] = root.querySelectorAll(".lab-pair table");
  const mark = root.querySelector(".lab-plane circle");
  return {
    costs: rows(costs).map((row) => row[1]),
    gpus: rows(gpus),
    mark: ["cx", "cy"].map((name) => Number(mark.getAttribute(name))),
    lines: [...root.querySelectorAll(".lab-plane polyline")].map((line) => ({
      thick: Number(line.getAttribute("stroke-width")) > 1,
      points: line.getAttribute("points").split(" ")
        .map((point) => point.split(",").map(Number)),
    })),
  };
}"""


def number(text):
    """What "1.23 GFLOP" or "1.23 MB" says."""
    digits, unit = text.split(" ")
    return float(digits) * STEPS[unit.removesuffix("FLOP").removesuffix("B")]


def assert_shows(lab, **changed):
    """Tables and picture say what the package computes, to three digits."""
    ours = CostLab(**changed)
    made, shown = ours.plan(), lab.evaluate(SHOWN)
    assert [number(text) for text in shown["costs"]] == pytest.approx(
        [*made, made.bytes], rel=0.00501
    )
    assert shown["gpus"] == [
        [f"{name}: {gb} GB", "yes" if ours.fits()[name] else "no"]
        for name, gb in GPUS.items()
    ]
    for mechanism, line in zip(MECHANISMS, shown["lines"], strict=True):
        assert line["thick"] == (mechanism == ours.mechanism)
        each = ours.values() | {"mechanism": mechanism}
        for n, point in zip(LENGTHS, line["points"], strict=True):
            place = drawn(n, plan(**(each | {"n": n})).bytes)
            assert point == pytest.approx(place, abs=0.051)
    assert shown["mark"] == pytest.approx(drawn(ours.n, made.bytes))


def drawn(n, size):
    """Where a length and its bytes lie: thirteen powers of two and of ten."""
    right = (math.log2(n) - 7) / 13 * 240 + 10
    return right, 200 * (18 - math.log10(size)) / 13


def test_the_start_is_what_the_package_computes(open_lab):
    assert_shows(open_lab())


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    control(lab, "n").press("ArrowRight")
    assert_shows(lab, n=4096)
    control(lab, "d_model").press("ArrowRight")  # which 12 does not divide
    sizes = {"n": 4096, "d_model": 1024, "n_heads": 8}
    assert_shows(lab, **sizes)
    control(lab, "n_heads").press("ArrowLeft")
    sizes["n_heads"] = 4
    assert_shows(lab, **sizes)
    control(lab, "batch").press("End")
    assert_shows(lab, **sizes, batch=256)
    control(lab, "dtype").press("ArrowDown")
    assert_shows(lab, **sizes, batch=256, dtype="bfloat16")
    for mechanism in ("fused", "window", "linear"):
        control(lab, "mechanism").press("ArrowDown")
        assert_shows(
            lab, **sizes, batch=256, dtype="bfloat16", mechanism=mechanism
        )
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_every_control_answers_to_the_mouse(open_lab):
    lab = open_lab()
    for name in ("n", "d_model", "n_heads", "batch"):
        control(lab, name).click(position={"x": 4, "y": 8})
    sizes = {"n": 128, "d_model": 256, "n_heads": 1, "batch": 1}
    assert_shows(lab, **sizes)
    control(lab, "dtype").select_option(label="bfloat16: 2 bytes")
    control(lab, "mechanism").select_option(label="window of 256")
    assert_shows(lab, **sizes, dtype="bfloat16", mechanism="window")
    lab.get_by_role("button", name="Back to the start").click()
    assert_shows(lab)


def test_every_length_for_every_mechanism(open_lab):
    for mechanism in MECHANISMS:
        lab = open_lab(f"#lab=cost&mechanism={mechanism}&n=128")
        for n in LENGTHS:
            assert_shows(lab, mechanism=mechanism, n=n)
            control(lab, "n").press("ArrowRight")


def test_only_heads_that_divide_are_offered(open_lab):
    lab = open_lab("#lab=cost&d_model=256&n_heads=12")
    expect(lab.get_by_role("alert")).to_contain_text("which divide d_model")
    assert_shows(lab, d_model=256, n_heads=8)
    control(lab, "n_heads").press("ArrowRight")
    assert_shows(lab, d_model=256, n_heads=16)


def test_numbers_are_told_on_hover(open_lab):
    lab = open_lab()
    lab.locator(".lab-reach").last.hover()
    detail = lab.locator(".lab-detail")
    expect(detail).to_contain_text("at 1,048,576 tokens.")
    told = detail.text_content().partition(" at ")[0].split(", ")
    longest = CostLab().values() | {"n": LENGTHS[-1]}
    for text, mechanism in zip(told, MECHANISMS, strict=True):
        name, size = text.split(" ", maxsplit=1)
        assert name == mechanism
        made = plan(**(longest | {"mechanism": mechanism}))
        assert number(size) == pytest.approx(made.bytes, rel=0.00501)


def test_a_change_is_said_to_screen_readers(open_lab):
    lab = open_lab()
    control(lab, "n").press("End")
    expect(lab.get_by_role("status")).to_contain_text(
        "fits on none of these GPUs"
    )


def test_a_setting_travels_by_its_link(open_lab):
    lab = open_lab("#lab=cost&n=65536&mechanism=fused&dtype=bfloat16")
    assert_shows(lab, n=65536, mechanism="fused", dtype="bfloat16")
    mended = open_lab("#lab=cost&batch=many&n_heads=4")
    assert_shows(mended, n_heads=4)
    expect(mended.get_by_role("alert")).to_contain_text("batch must be")
