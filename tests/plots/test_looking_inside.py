"""The pictures on looking inside draw what they are given."""

import torch
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from selfattn.plots import looking_inside as plots
from selfattn.plots.colours import K, Q


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
