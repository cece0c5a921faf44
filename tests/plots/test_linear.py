"""The figures on linear attention hold the numbers that they were given."""

import re
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from selfattn.plots import linear
from selfattn.plots.drawing import WIDTH

STATES = [[[2, 0], [2, 0]], [[2, 6], [2, -2]]]
OUTPUTS = [[1.0, 0.0], [0.57, -0.86]]


def test_the_memory_is_written_read_and_never_seen_through():
    picture = linear.memory(["the", "cat"], STATES, OUTPUTS)
    root = ElementTree.fromstring(picture._repr_svg_())
    words = [x.text.replace("−", "-") for x in root.findall(".//{*}text")]
    numbers = [float(x) for x in words if re.fullmatch(r"-?\d+", x)]
    assert numbers == [x for state in STATES for row in state for x in row]
    assert "(1.00, 0.00)" in words and "(0.57, -0.86)" in words
    assert "S after cat" in words
    for box in root.findall(".//{*}rect"):
        assert float(box.get("x")) >= 0
        assert float(box.get("x")) + float(box.get("width")) <= WIDTH
        assert float(box.get("y")) + float(box.get("height")) < picture.height
    lines = root.findall(".//{*}polyline")
    assert len(lines) == 5  # two write, two read, one memory to the next


def test_a_band_holds_every_draw():
    ax = Figure().subplots()
    many = [[0.3, 0.1, 0.2], [0.9, 0.5, 0.7]]
    linear.band(ax, [1, 2], {"a": many}, xlabel="x", ylabel="y")
    (line,) = ax.lines
    assert list(line.get_ydata()) == [0.2, 0.7]
    (area,) = ax.collections
    ys = area.get_paths()[0].vertices[:, 1]
    assert {round(float(y), 6) for y in ys} == {0.1, 0.3, 0.5, 0.9}


def test_every_run_of_recall_is_a_dot():
    runs = [
        {"arm": arm, "d": d, "pairs": pairs, "right": share + seed / 100}
        for arm, share in (("softmax", 0.9), ("linear", 0.5))
        for d in (4, 8)
        for pairs in (4, 16)
        for seed in range(3)
    ]
    axes = Figure().subplots(1, 2)
    linear.recall([*axes], runs, arms=["softmax", "linear"], read="right")
    for ax, d in zip(axes, (4, 8), strict=True):
        assert ax.get_title() == f"{d} features"
        middles, dots = ax.lines[0], ax.lines[1]
        assert list(middles.get_ydata()) == pytest.approx([0.91, 0.91])
        shown = sorted(dots.get_ydata())
        mine = [r for r in runs if r["d"] == d and r["arm"] == "softmax"]
        assert shown == pytest.approx(sorted(r["right"] for r in mine))
        border = ax.lines[-1].get_xdata()
        assert list(border) == [d, d]
