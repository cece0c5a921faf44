"""The figures on Linformer draw every seed where it was, and the medians."""

from statistics import median
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from selfattn.plots.drawing import WIDTH
from selfattn.plots.linformer import (
    PUT_IN,
    in_order,
    mixing,
    recalled,
    spectra,
)

MIXTURES = {
    "means": [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]],
    "any": [[1.0, -2.0, 0.5, 1.0]],
}
ORDERED = [
    {"task": task, "rate": rate, "k": k, "seed": seed}
    | {"right, 300": (seed**2 + k + 100 * rate) / 40}
    | {
        f"{name} {m}, 300": (seed**2 + m + i) / 40
        for i, (_, name) in enumerate(PUT_IN)
        for m in (2, 4, 8)
        if k == 0
    }
    for task in ("reversed", "sorted")
    for rate in (0.002, 0.004)
    for k in (0, 4, 8, 16)
    for seed in range(5)
]
ASKED = [
    {"pairs": pairs, "k": k, "rate": rate, "seed": seed}
    | {"right, 300": (k / pairs + seed**2 / 50) * (1 - rate)}
    for pairs in (8, 16)
    for k in (0, pairs // 4, pairs // 2, pairs)
    for rate in (0.002, 0.004)
    for seed in range(5)
]


def test_each_key_has_a_line_to_each_mixture_that_holds_it():
    picture = mixing(MIXTURES)
    assert picture.data["mixtures"] == MIXTURES
    root = ElementTree.fromstring(picture._repr_svg_())
    boxes = root.findall(".//{*}rect")
    assert len(boxes) == (4 + 2 + 4) + (4 + 1 + 4)
    for box in boxes:
        assert float(box.get("x")) >= 0
        assert float(box.get("x")) + float(box.get("width")) <= WIDTH
    lines = root.findall(".//{*}polyline")
    assert len(lines) == (8 + 4) + (4 + 4)
    widths = [float(line.get("stroke-width")) for line in lines]
    assert widths[8:12] == [2.4] * 4
    assert widths[-4:] == pytest.approx([1.2, 2.4, 0.6, 1.2])
    ends = [line.get("points").split()[-1].split(",")[0] for line in lines]
    step = (WIDTH - 20) / 4
    places = [round((float(x) - 10) / step - 0.5) for x in ends[8:12]]
    assert places == [0, 1, 2, 3]


def test_a_spectrum_is_summed_from_the_largest():
    ax = Figure().subplots()
    drawn = spectra(ax, {"one": [3.0, 1.0], "even": [1.0, 1.0, 1.0, 1.0]})
    assert drawn == {"one": [0.75, 1.0], "even": [0.25, 0.5, 0.75, 1.0]}
    one, even = (line.get_xydata().tolist() for line in ax.lines[:2])
    assert one == [[0.5, 0.75], [1.0, 1.0]]
    assert even[0] == [0.25, 0.25]
    assert [*ax.lines[2].get_xdata()] == [0.25, 0.25]


def test_each_curve_has_its_seeds_and_its_median():
    ax = Figure().subplots()
    drawn = in_order(ax, ORDERED, task="sorted", rate=0.004, steps=300)
    mine = [r for r in ORDERED if (r["task"], r["rate"]) == ("sorted", 0.004)]
    trained = {
        k: [r["right, 300"] for r in mine if r["k"] == k] for k in (4, 8, 16)
    }
    expected = [median(many) for many in trained.values()]
    assert drawn["mixtures, trained in"] == expected
    points = {tuple(p) for line in ax.lines for p in line.get_xydata()}
    assert {(k, x) for k, many in trained.items() for x in many} <= points
    whole = [r for r in mine if r["k"] == 0]
    for words, name in PUT_IN:
        put = {m: [r[f"{name} {m}, 300"] for r in whole] for m in (2, 4, 8)}
        assert drawn[words] == [median(many) for many in put.values()]
        assert {(m, x) for m, many in put.items() for x in many} <= points
    level = median(r["right, 300"] for r in whole)
    assert drawn["attention"] == [level]
    assert [*ax.lines[-1].get_ydata()] == [level] * 2


def test_recall_is_drawn_by_mixtures_for_each_pair():
    ax = Figure().subplots()
    drawn = recalled(ax, ASKED, rate=0.002, steps=300)
    points = {tuple(p) for line in ax.lines for p in line.get_xydata()}
    for pairs in (8, 16):
        for place, k in enumerate((pairs // 4, pairs // 2, pairs)):
            many = [
                r["right, 300"]
                for r in ASKED
                if (r["pairs"], r["k"], r["rate"]) == (pairs, k, 0.002)
            ]
            assert drawn[pairs][place] == median(many)
            assert {(k / pairs, x) for x in many} <= points
