"""The figures on cost hold the numbers that they were given."""

import pytest
from matplotlib.figure import Figure

from selfattn.plots import cost


@pytest.fixture
def ax():
    return Figure().subplots()


def test_each_curve_is_drawn_by_powers(ax):
    curves = {"tables": [4, 16, 64], "inputs": [2, 4, 8]}
    cost.growth(ax, [2, 4, 8], curves, ylabel="bytes", crossing=4)
    drawn = {line.get_label(): list(line.get_ydata()) for line in ax.lines}
    assert {name: drawn[name] for name in curves} == curves
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert list(ax.lines[-1].get_xdata()) == [4, 4]


def test_every_run_is_a_point(ax):
    runs = [
        {"n": n, "what": heap, "ratio": n / 100, "seed": seed}
        for n in (512, 1024)
        for heap in ("default", "kept")
        for seed in range(5)
    ]
    cost.naive_to_fused(ax, runs)
    points = [line for line in ax.lines if line.get_marker() != "None"]
    assert [len(line.get_ydata()) for line in points] == [10, 10]
    assert points[0].get_ydata().tolist() == 5 * [5.12] + 5 * [10.24]
    assert list(ax.lines[-1].get_ydata()) == [1, 1]


def test_the_roof_bends_at_the_ridge(ax):
    points = {"naive": (64, 139.0), "fused": (512, 648.0)}
    cost.roofline(ax, peak=989, bandwidth=3.35, points=points)
    xs, ys = ax.lines[0].get_data()
    assert xs[1] == 989 / 3.35 and list(ys) == [4 * 3.35, 989, 989]
    assert [(x.get_xdata()[0], x.get_ydata()[0]) for x in ax.lines[1:]] == [
        (64, 139.0),
        (512, 648.0),
    ]
