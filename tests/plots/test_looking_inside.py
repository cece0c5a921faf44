"""The pictures on looking inside draw what they are given."""

from itertools import combinations

import pytest
import torch
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.text import Text

from selfattn.plots import looking_inside as plots
from selfattn.plots.colours import K, Q
from selfattn.plots.phone import on_a_phone

HEADS = [f"{block}.{head}" for block in "12" for head in "1234"]
SHARES = [0.12, 0.18, 0.37, 0.34, 0.64, 0.17, 0.19, 0.178]
LOSSES = [0.01, 0.02, 1.3, 0.08, 4.23, 0.01, 0.01, 0.01]


def box_of(text):
    """Where its letters are, without the line that leads from them."""
    return Text.get_window_extent(text)


def met(texts):
    """Pairs of words that hide a part of each other, by a pixel or more."""
    boxes = [(t.get_text(), box_of(t)) for t in texts]
    return [
        (one, other)
        for (one, a), (other, b) in combinations(boxes, 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1
        and min(a.y1, b.y1) - max(a.y0, b.y0) > 1
    ]


def test_every_head_has_its_map_and_words_stand_outside():
    axes = Figure().subplots(2, 2)
    weights = torch.rand(4, 3, 3)
    names = ["1.1", "1.2", "2.1", "2.2"]
    assert plots.heads(axes, weights, ["a", "b", "c"], names) is axes
    for ax, table, name in zip(axes.flat, weights, names, strict=True):
        assert ax.get_title() == f"head {name}"
        drawn = torch.tensor(ax.images[0].get_array().tolist())
        assert torch.allclose(drawn, table)
        assert ax.images[0].get_clim() == (0, 1)
    left = [t.get_text() for t in axes[0][0].get_yticklabels()]
    below = [t.get_text() for t in axes[1][1].get_xticklabels()]
    assert left == below == ["a", "b", "c"]
    assert axes[0][0].get_ylabel() == "query"
    assert axes[1][1].get_xlabel() == "key"


def test_each_head_stands_at_its_weight_and_loss():
    ax = Figure().subplots()
    plots.needs(ax, [0.1, 0.9], [2.0, 0.3], ["1.2", "2.1"], whole=0.25)
    first, second, whole = ax.lines
    assert first.get_xydata().tolist() == [[0.1, 2.0]]
    assert second.get_xydata().tolist() == [[0.9, 0.3]]
    assert [t.get_text() for t in ax.texts] == ["1.2", "2.1"]
    assert same_color(first.get_color(), Q)
    assert same_color(second.get_color(), K)
    assert list(whole.get_ydata()) == [0.25, 0.25]


@pytest.mark.parametrize("seen", [lambda figure: figure, on_a_phone])
def test_no_name_of_a_head_stands_on_another_or_on_a_mark(seen):
    """2.3, 2.4, 1.2 and 2.2 lay in a pile, and none at its mark."""
    figure = Figure(figsize=(5, 3.4))
    plots.needs(figure.subplots(), SHARES, LOSSES, HEADS, whole=0.01)
    drawn = seen(figure)
    drawn.draw_without_rendering()
    (ax,) = drawn.axes
    names = {text.get_text(): box_of(text) for text in ax.texts}
    assert sorted(names) == HEADS
    assert met(ax.texts) == []
    marks = ax.transData.transform(list(zip(SHARES, LOSSES, strict=True)))
    for name, box in names.items():
        assert not [xy for xy in marks if box.padded(2).contains(*xy)], name
        assert ax.bbox.contains(box.x0, box.y0)
        assert ax.bbox.contains(box.x1, box.y1)
    crowd = ["1.1", "2.2", "2.4", "1.2", "2.3"]  # from left to right
    assert sorted(crowd, key=lambda name: names[name].x0) == crowd
    for name, text in zip(names, ax.texts, strict=True):
        assert (text.arrow_patch is not None) == (name in crowd)


@pytest.mark.parametrize("seen", [lambda figure: figure, on_a_phone])
def test_each_word_of_a_heads_map_has_its_line(seen):
    """On a phone they were missing at half of the rows, and lay on each
    other below.
    """
    figure = Figure(figsize=(6.6, 5), layout="constrained")
    words = [".", *["cat", "deep", "river", "lazy", "bridge"] * 2, "cat"]
    weights = torch.rand(8, 12, 12)
    plots.heads(figure.subplots(2, 4), weights, words, HEADS)
    drawn = seen(figure)
    drawn.draw_without_rendering()
    columns = 4 if drawn is figure else 2
    for place, (ax, table) in enumerate(zip(drawn.axes, weights, strict=True)):
        shown = torch.tensor(ax.images[0].get_array().tolist())
        assert torch.allclose(shown, table)
        beside, below = ax.get_yticklabels(), ax.get_xticklabels()
        assert [t.get_text() for t in beside] == (
            [] if place % columns else words
        )
        last = place >= 8 - columns
        assert [t.get_text() for t in below] == (words if last else [])
        assert met(beside) == met(below) == []


def test_a_line_for_each_run_and_a_word_for_each_kind():
    ax = Figure().subplots()
    curves = {"trained": [[0.1, 0.9], [0.2, 0.8]], "untrained": [[0.5, 0.4]]}
    plots.probes(ax, curves, "number")
    drawn = [line.get_ydata().tolist() for line in ax.lines]
    assert drawn == [[0.1, 0.9], [0.2, 0.8], [0.5, 0.4]]
    _, words = ax.get_legend_handles_labels()
    assert words == ["trained", "untrained"]
    assert ax.get_title() == "number"
    assert list(ax.get_xticks()) == [0, 1]


def test_three_outlines_under_the_area_of_one():
    ax = Figure().subplots()
    plots.histograms(ax, {n: torch.randn(50) for n in "qkv"}, bins=5)
    _, words = ax.get_legend_handles_labels()
    assert sorted(words) == ["k", "q", "v"]
    assert len(ax.patches) == 3
    for outline in ax.patches:
        assert outline.get_xy()[:, 1].max() > 0
