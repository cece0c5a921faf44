"""The pictures on devices: who sends to whom, and what a model says."""

import re
from itertools import product
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from selfattn.plots.devices import Exchange, forecast, who_sends
from selfattn.plots.drawing import WIDTH

RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
ALL = list(product(range(4), repeat=2))
PICTURE = who_sends(
    [
        Exchange("ring", RING, "keys and values", colour="k"),
        Exchange("all-to-all", ALL, "tokens for heads"),
        Exchange("all-reduce", [], "sums", summed=True),
    ],
    4,
)


def parts(tag):
    root = ElementTree.fromstring(PICTURE._repr_svg_())
    return root.findall(f".//{{*}}{tag}")


def ends(line):
    return [
        tuple(map(float, p.split(","))) for p in line.get("points").split()
    ]


def test_an_arrow_leads_from_the_rank_that_sends_to_the_one_that_gets():
    lines = [ends(line) for line in parts("polyline")]
    assert len(lines) == len(RING) + len(ALL) + 2 * 4
    place = {WIDTH / 4 * (rank + 0.5): rank for rank in range(4)}
    drawn = [(place[a[0]], place[b[0]]) for a, b in lines[:20]]
    assert drawn == [*RING, *ALL]
    assert all(a[1] < b[1] for a, b in lines)
    for to_sum, to_rank in zip(lines[20::2], lines[21::2], strict=True):
        assert to_sum[1][0] == to_rank[0][0] == WIDTH / 2
        assert to_sum[0][0] == to_rank[1][0]


def test_it_fits_on_a_phone_in_the_sites_colours():
    for box in parts("rect"):
        x, y, wide, deep = (
            float(box.get(k)) for k in ("x", "y", "width", "height")
        )
        assert x >= 0 and x + wide <= WIDTH and y + deep <= PICTURE.height
    svg = PICTURE._repr_svg_()
    colours = re.findall(r'(?:fill|stroke)="(?!none)([^"]*)"', svg)
    assert all(colour.startswith("var(--") for colour in colours)
    written = [text.text for text in parts("text")]
    assert written[:2] == ["ring", "keys and values"]
    assert written.count("rank 3") == 6


def test_marks_are_the_runs_and_lines_the_model():
    ax = Figure().subplots()
    runs = [
        {"ranks": p, "n": n, "ms": p * n} for p in (1, 2) for n in (512, 1024)
    ]
    model = {(p, n): p * n + 1.0 for p in (1, 2) for n in (512, 1024)}
    assert forecast(ax, runs, model, [512]) is ax
    marks, line, *_ = ax.lines
    assert list(marks.get_xdata()) == [512, 1024]
    assert list(line.get_ydata()) == [513, 1025]
    assert [t.get_text() for t in ax.get_legend().texts] == [
        "1 rank",
        "2 ranks",
    ]
    border = ax.lines[-1].get_xdata()[0]
    assert border == pytest.approx(512 * 2**0.25)
