"""The figures on the scale hold the numbers that they were given."""

import pytest
import torch
from matplotlib.figure import Figure

from selfattn.plots import scaling

RUNS = [
    {"arm": arm, "d_k": d_k, "rate": rate, "seed": seed, "right": right}
    for arm, right in zip(
        scaling.ARM_STYLES, (0.1, 0.3, 0.5, 0.7), strict=True
    )
    for d_k in (8, 64)
    for rate in (0.1, 1.0)
    for seed in range(5)
]


@pytest.fixture
def ax():
    return Figure().subplots()


def test_every_walk_is_drawn_between_the_roots(ax):
    paths = torch.tensor([[1.0, 2.0, 1.0], [0.5, 0.0, -0.5]])
    assert scaling.walks(ax, paths) is ax
    drawn = [line.get_ydata().tolist() for line in ax.lines]
    assert drawn[:2] == paths.tolist()
    assert drawn[2] == pytest.approx([1, 2**0.5, 3**0.5])
    assert drawn[3] == pytest.approx([-1, -(2**0.5), -(3**0.5)])


def test_curves_are_those_given_and_the_dashed_have_their_colour(ax):
    curves = {"none": [1.0, 2.0], "root": [3.0, 4.0]}
    dashed = {"none": [5.0, 6.0]}
    back = scaling.by_width(ax, [4, 16], curves, dashed=dashed, title="t")
    assert back is ax
    none, root, other = ax.lines
    assert [list(line.get_ydata()) for line in ax.lines] == [
        [1, 2], [3, 4], [5, 6],
    ]  # fmt: skip
    assert other.get_color() == none.get_color() != root.get_color()
    assert list(none.get_xdata()) == [4, 16]


def test_every_run_of_the_width_is_a_point_near_its_rate(ax):
    assert scaling.right_by_rate(ax, RUNS, d_k=64, floor=0.25) is ax
    floor, *lines = ax.lines
    assert list(floor.get_ydata()) == [0.25] * 2
    points, means = lines[::2], lines[1::2]
    for line, mean, right in zip(
        points, means, (0.1, 0.3, 0.5, 0.7), strict=True
    ):
        assert list(line.get_ydata()) == [right] * 10
        assert list(mean.get_ydata()) == pytest.approx([right] * 2)
        near = [0.1] * 5 + [1.0] * 5
        assert list(line.get_xdata()) == pytest.approx(near, rel=0.1)
    labels = [line.get_label() for line in points]
    assert labels == list(scaling.ARM_NAMES.values())
