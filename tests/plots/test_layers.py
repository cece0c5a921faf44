"""The figures on layers hold the numbers that they were given."""

import pytest
import torch
from matplotlib.figure import Figure

from selfattn.layers import gelu, relu
from selfattn.plots import layers

STACKS = [
    {"residual": residual, "seed": seed}
    | {f"distinct {i}": -i * (1 - residual) - seed for i in range(13)}
    | {f"query {i}": float(i) for i in range(1, 13)}
    for residual in (False, True)
    for seed in range(5)
]
RUNS = [
    {"arm": arm, "depth": depth, "rate": rate, "seed": seed, "right": right}
    for arm in ("pre", "post")
    for depth in (2, 18)
    for rate in (0.001, 0.01, 0.1)
    for seed, right in enumerate(
        [1.0, 0.95, 0.94] if (arm, depth) == ("post", 18) else [1.0] * 3
    )
]
ARMS = {"bare": {"residual": False}, "path": {"residual": True}}


@pytest.fixture
def ax():
    return Figure().subplots()


def test_lines_are_medians_and_bars_are_ranges(ax):
    assert layers.by_block(ax, STACKS, "distinct", ARMS) is ax
    bare, path = ax.lines
    assert list(bare.get_ydata()) == [-i - 2 for i in range(13)]
    assert list(path.get_ydata()) == [-2] * 13
    bars = ax.collections[1].get_segments()
    assert [bar[:, 1].tolist() for bar in bars] == [[-4, 0]] * 13
    assert bare.get_linestyle() != path.get_linestyle()


def test_a_gradient_begins_at_the_first_block(ax):
    layers.by_block(ax, STACKS, "query", ARMS)
    assert list(ax.lines[0].get_xdata()) == list(range(1, 13))


def test_a_map_counts_the_seeds_that_learned(ax):
    assert layers.success_map(ax, RUNS, "post") is ax
    words = [text.get_text() for text in ax.texts]
    assert words == ["3 of 3"] * 3 + ["2 of 3"] * 3
    (image,) = ax.images
    assert image.get_array()[1, 0] == pytest.approx(2 / 3)
    assert layers.learned(RUNS, "post", 18, 0.1) == (2, 3)


def test_activations_are_drawn_as_they_are(ax):
    x = torch.linspace(-1, 1, 5)
    layers.activations(ax, x, {"ReLU": relu, "GELU": gelu})
    assert list(ax.lines[0].get_ydata()) == [0, 0, 0, 0.5, 1]
    assert ax.lines[1].get_ydata()[0] == pytest.approx(-0.159, abs=1e-3)
