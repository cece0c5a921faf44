"""The figures on models hold the numbers that they were given."""

from statistics import median

import pytest
from matplotlib.figure import Figure

from selfattn.plots import colours, models

RUNS = [
    {"arm": arm, "rate": rate, "seed": seed}
    | {
        f"loss, {budget}": 1 / (1 + seed + 100 * rate) + 10 / budget
        for budget in models.BUDGETS
    }
    for arm in ("Transformer", "LSTM")
    for rate in (0.001, 0.01)
    for seed in range(5)
]
RUNS += [{"arm": "bigram", "seed": s, "loss, 400": 1.3} for s in range(5)]
WRITTEN = [
    {
        f"{what}, {name}": (place + seed) / 20
        for place, name in enumerate(models.WAYS)
        for what in ("written", "different")
    }
    for seed in range(3)
]


@pytest.fixture
def ax():
    return Figure().subplots()


def test_the_best_rate_is_that_of_the_least_loss_at_the_end():
    best = models.at_best_rate(RUNS, "LSTM")
    assert {run["rate"] for run in best} == {0.01}
    assert len(best) == 5


def test_every_seed_is_a_mark_and_the_medians_are_joined(ax):
    assert models.learning(ax, RUNS, floor=0.32) is ax
    joined = [line for line in ax.lines if "rate" in str(line.get_label())]
    assert len(joined) == 2
    for line, arm in zip(joined, models.ARMS, strict=True):
        own = models.at_best_rate(RUNS, arm)
        assert line.get_xdata().tolist() == list(models.BUDGETS)
        assert line.get_ydata().tolist() == [
            median(run[f"loss, {b}"] for run in own) for b in models.BUDGETS
        ]
        assert line.get_label() == f"{arm}, rate .01"
    marks = [line for line in ax.lines if line.get_marker() in "os"]
    assert [len(line.get_xdata()) for line in marks] == [5] * 6
    bounds = {line.get_label(): line.get_ydata()[0] for line in ax.lines[-2:]}
    assert bounds == {"bigram": 1.3, "entropy": 0.32}


def test_each_way_has_its_row_and_its_colour(ax):
    assert models.ways(ax, WRITTEN) is ax
    points, middles = ax.lines[::2], ax.lines[1::2]
    assert len(points) == len(middles) == len(models.WAYS)
    for row, (dots, mark) in enumerate(zip(points, middles, strict=True)):
        shares = [(row + seed) / 20 for seed in range(3)]
        assert dots.get_xdata().tolist() == shares
        assert set(dots.get_ydata().tolist()) == {row}
        assert mark.get_xdata()[0] == median(shares)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert [n.removeprefix("T = ") for n in names] == list(models.WAYS)
    assert points[0].get_color() == colours.OUTPUT
    assert {line.get_color() for line in points[4:]} == {colours.V}
