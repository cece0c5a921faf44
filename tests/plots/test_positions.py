"""The figures on positions hold the numbers that they were given."""

import pytest
import torch
from contrast import contrast
from matplotlib.figure import Figure

from selfattn.plots import colours, positions
from selfattn.positions import sinusoidal

RUNS = [
    {"arm": arm, "seed": seed, "within": 0.9, "twice": 0.5, "four": place / 10}
    for place, arm in enumerate(positions.ARMS)
    for seed in range(5)
]


@pytest.fixture
def ax():
    return Figure().subplots()


def test_waves_are_the_table(ax):
    table = sinusoidal(7, 5)
    assert positions.waves(ax, table) is ax
    (image,) = ax.images
    assert torch.equal(torch.tensor(image.get_array().tolist()), table)
    assert image.get_clim() == (-1, 1)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature", "position")


def test_curves_are_drawn_over_their_distances(ax):
    curves = {"one": [1.0, 2.0, 1.0], "other": [0.0, 3.0, 0.0]}
    back = positions.by_distance(ax, [-1, 0, 1], curves, ylabel="product")
    assert back is ax
    assert ax.lines[1].get_xydata().tolist() == [[-1, 0], [0, 3], [1, 0]]
    assert ax.lines[2].get_color() == colours.Q
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [*curves]


def test_vectors_are_drawn_before_and_after(ax):
    before, after = torch.tensor([[1.0, 0]]), torch.tensor([[0, 1.0]])
    back = positions.turned(
        ax, before, after, ["a"], colour=colours.K, title="keys"
    )
    assert back is ax
    dashed, turned, end = ax.lines[:3]
    assert dashed.get_xydata().tolist() == [[0, 0], [1, 0]]
    assert turned.get_xydata().tolist() == [[0, 0], [0, 1]]
    assert end.get_xydata().tolist() == [[0, 1]]
    assert dashed.is_dashed()


def test_a_vector_before_is_as_strong_as_after_and_dashed(ax):
    """A third of its colour was left: on the page it was hardly seen."""
    x = torch.tensor([[1.0, 0]])
    for colour in (colours.Q, colours.K):
        positions.turned(ax, x, x, ["a"], colour=colour, title="")
        before, after, *_, across, up = ax.lines
        assert before.get_alpha() is None
        assert before.is_dashed() and not after.is_dashed()
        assert max(across.zorder, up.zorder) < before.zorder
        assert contrast(before.get_color(), "#FFFFFF") >= 3
        ax.clear()


def test_every_run_is_a_point_in_its_row(ax):
    assert positions.reach(ax, RUNS) is ax
    points = [line for line in ax.lines if len(line.get_xdata()) == 5]
    assert len(points) == 3 * len(positions.ARMS)
    for place, arm in enumerate(positions.ARMS):
        within, twice, four = points[3 * place : 3 * place + 3]
        assert list(within.get_xdata()) == [0.9] * 5
        assert list(twice.get_xdata()) == [0.5] * 5
        assert list(four.get_xdata()) == [place / 10] * 5
        assert list(twice.get_ydata()) == [place] * 5
        assert ax.texts[place].get_text() == arm
        assert place - 1 < ax.texts[place].get_position()[1] < place
