"""A figure shows all that it is given, under the right names, or says no."""

import pytest
import torch
from matplotlib.figure import Figure

from selfattn.plots import (
    bench,
    cost,
    dot_product,
    layers,
    linear,
    linformer,
    origins,
    pictures,
    positions,
    sparse,
)

SEEDS = [[1.0, 2.0], [3.0, 4.0]]
TOLD = {"xlabel": "x", "ylabel": "y"}


def axes():
    return Figure().add_subplot()


def racers(names):
    return [
        {"who": who, "n": n, "speed": 1.0}
        for who in ("first", *names)
        for n in (2, 4)
    ]


# How each draws curves of these names, and how many looks it has.
DRAWN = {
    "linear.band": (
        lambda ax, names: linear.band(
            ax, [1, 2], dict.fromkeys(names, SEEDS), **TOLD
        ),
        len(linear.LOOKS),
    ),
    "sparse.curves": (
        lambda ax, names: sparse.curves(
            ax, [1, 2], dict.fromkeys(names, SEEDS), **TOLD
        ),
        len(sparse.LOOKS),
    ),
    "layers.activations": (
        lambda ax, names: layers.activations(
            ax, torch.ones(2), dict.fromkeys(names, torch.tanh)
        ),
        len(layers.STYLES),
    ),
    "layers.by_block": (
        lambda ax, names: layers.by_block(
            ax,
            [{"arm": name, "path 0": 1.0} for name in names],
            "path",
            {name: {"arm": name} for name in names},
        ),
        len(layers.STYLES),
    ),
    "positions.by_distance": (
        lambda ax, names: positions.by_distance(
            ax, [0, 1], dict.fromkeys(names, (1.0, 2.0)), ylabel="y"
        ),
        len(positions.DASHES),
    ),
    "origins.by_distance": (
        lambda ax, names: origins.by_distance(
            ax, dict.fromkeys(names, (1.0, 2.0))
        ),
        len(origins.LOOKS),
    ),
    "bench.speeds": (
        lambda ax, names: bench.speeds(ax, racers(names)),
        len(bench.STYLES),
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_curve_too_many_is_refused(name):
    """It was left out, and the figure looked whole."""
    draw, most = DRAWN[name]
    names = [f"curve {i}" for i in range(most + 1)]
    ax = axes()
    draw(ax, names[:-1])
    labels = ax.get_legend_handles_labels()[1]
    assert [x for x in labels if x.startswith("curve")] == names[:-1]
    with pytest.raises(ValueError, match=f"there are {most + 1} curves"):
        draw(axes(), names)


@pytest.mark.parametrize("module", [cost, linformer])
def test_these_pair_their_curves_likewise(module):
    assert module.each_with_a_look is linear.each_with_a_look


@pytest.mark.parametrize(
    "rows, columns", [("a", "cde"), ("abc", "cde"), ("ab", "c")]
)
def test_a_table_has_a_name_for_each_row_and_column(rows, columns):
    """One name too many made an empty row; one too few, one without."""
    with pytest.raises(ValueError, match=r"rows and columns.*\(2, 3\), but"):
        dot_product.table(
            axes(), torch.ones(2, 3), rows=rows, columns=columns, title=""
        )


@pytest.mark.parametrize("source, target", [("ab", "de"), ("abc", "d")])
def test_an_alignment_has_a_weight_for_each_pair(source, target):
    with pytest.raises(ValueError, match=r"but they are \(2, 3\)"):
        origins.alignment(axes(), torch.ones(2, 3), source, target)


@pytest.mark.parametrize("n_heads", [0, 3, 5])
def test_features_are_cut_into_heads_evenly(n_heads):
    """By 3 of 4, the last was in no head."""
    with pytest.raises(ValueError, match=f"4 evenly, but there are {n_heads}"):
        pictures.split([[1.0] * 4] * 2, n_heads)


@pytest.mark.parametrize("keys", [0, 3, 8])
def test_query_heads_share_those_of_keys_evenly(keys):
    """By 3 of 4, the last one read a head beyond the edge."""
    with pytest.raises(ValueError, match=f"4 evenly, but there are {keys}"):
        pictures.sharing({"arm": (4, keys)})


def test_a_norm_stands_before_or_after():
    """Whatever it was called else, it was drawn before."""
    with pytest.raises(ValueError, match="but it is 'none'"):
        pictures.block("none")
