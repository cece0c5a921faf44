"""The lab on positions on its page, driven in a real browser."""

import math

import pytest
from guards.site_pages import control
from playwright.sync_api import expect

from selfattn.labs.positions import PositionsLab

ADDRESS = "book/positions.html"
WIDE, HIGH, EDGE = 480, 150, 12  # of the chart, in its own units

# Every pixel, point and hand of the lab, as a reader finds them.
SHOWN = """(root) => {
  const canvas = root.querySelector("canvas");
  const { data } = canvas.getContext("2d")
    .getImageData(0, 0, canvas.width, canvas.height);
  const points = (line) => line.getAttribute("points").split(" ")
    .filter(Boolean).map((point) => point.split(",").map(Number));
  const number = (node, name) => Number(node.getAttribute(name));
  const dials = [...root.querySelectorAll(".lab-dials svg")]
    .filter((dial) => dial.getClientRects().length > 0);
  return {
    size: [canvas.height, canvas.width],
    shades: [...data].filter((_, i) => i % 4 === 3),
    curves: [...root.querySelectorAll(".lab-curve")].map(points)
      .filter((curve) => curve.length),
    query: number(root.querySelector(".lab-plane .lab-query-line"), "x1"),
    key: ["cx", "cy"].map((name) =>
      number(root.querySelector(".lab-key-dot"), name)),
    hands: dials.map((dial) => [...dial.querySelectorAll("line")]
      .map((hand) => [number(hand, "x2"), number(hand, "y2")])),
  };
}"""


def assert_shows(lab, **changed):
    """Map, curves, marks and dials are those that the package computes."""
    mine = PositionsLab(**changed)
    ours, shown = mine.pictured(), lab.evaluate(SHOWN)
    alibi = mine.encoding == "alibi"
    assert shown["size"] == list(ours.rows.shape)
    low = 0 if alibi else -1
    shades = (255 * (ours.rows - low) / (1 - low)).flatten().tolist()
    assert shown["shades"] == pytest.approx(shades, abs=0.501)
    top = 0 if alibi else mine.d / 2
    bottom = min(-1, ours.curves.min().item()) if alibi else -mine.d / 2

    def place(p, value):
        high = EDGE + (top - value) / (top - bottom) * (HIGH - 2 * EDGE)
        return [(p + 0.5) * WIDE / mine.n, high]

    assert len(shown["curves"]) == len(ours.curves)
    for drawn, curve in zip(
        shown["curves"], ours.curves.tolist(), strict=True
    ):
        for p, point in enumerate(drawn):
            assert point == pytest.approx(place(p, curve[p]), abs=0.06)
    value = ours.curves[0, mine.key].item()
    assert shown["key"] == pytest.approx(place(mine.key, value), abs=0.06)
    assert shown["query"] == pytest.approx(place(mine.query, 0)[0])
    ahead = math.radians(mine.turn) if mine.encoding == "rope" else 0
    assert len(shown["hands"]) == len(ours.turns)
    for hands, w in zip(shown["hands"], ours.turns.tolist(), strict=True):
        for (x, y), angle in zip(
            hands, (mine.key * w + ahead, mine.query * w), strict=True
        ):
            assert x == pytest.approx(10 * math.cos(angle), abs=0.006)
            assert y == pytest.approx(-10 * math.sin(angle), abs=0.006)


def test_the_start_is_what_the_package_computes(open_lab):
    assert_shows(open_lab())


def test_every_control_answers_to_the_keyboard(open_lab):
    lab = open_lab()
    values = {}
    for setting, key, value in (
        ("n", "ArrowRight", 33),
        ("d", "ArrowRight", 32),
        ("base", "ArrowLeft", 1000),
        ("query", "ArrowLeft", 19),
        ("key", "ArrowRight", 13),
        ("encoding", "ArrowDown", "rope"),
        ("turn", "ArrowRight", 15),
        ("encoding", "ArrowDown", "alibi"),
        ("heads", "ArrowRight", 12),
        ("n", "Home", 2),
    ):
        control(lab, setting).press(key)
        values[setting] = value
        if setting == "n" and value == 2:
            values |= {"query": 1, "key": 1}
        assert_shows(lab, **values)
    lab.get_by_role("button", name="Back to the start").press("Enter")
    assert_shows(lab)


def test_numbers_are_told_where_the_pointer_or_the_focus_is(open_lab):
    lab = open_lab()
    rows = PositionsLab().pictured().rows
    box = lab.locator("canvas").bounding_box()
    lab.locator("canvas").hover(
        position={
            "x": box["width"] * 20.5 / 32,
            "y": box["height"] * 3.5 / 16,
        }
    )
    number = f"{rows[3, 20]:.3f}".replace("-", "−")
    detail = lab.locator(".lab-detail")
    expect(detail).to_have_text(
        f"Feature 3, cosine of pair 1, position 20: {number}."
    )
    lab.locator(".lab-dials svg").nth(2).focus()
    expect(detail).to_contain_text("Pair 2, once round in 62.8 positions")


def test_a_setting_travels_by_its_link(open_lab):
    lab = open_lab("#lab=positions&encoding=rope&d=8&n=40&query=39&turn=-45")
    assert_shows(lab, encoding="rope", d=8, n=40, query=39, turn=-45)
    expect(lab.get_by_role("alert")).to_be_hidden()
    lab = open_lab("#lab=positions&query=40")
    assert_shows(lab, query=31)
    expect(lab.get_by_role("alert")).to_contain_text("query must lie between")
