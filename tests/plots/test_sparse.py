"""The figures on sparse patterns draw every seed, and the medians."""

from statistics import median

import pytest
from matplotlib.figure import Figure

from selfattn.plots.sparse import bars, curves

ARMS = {
    "one": [[0.3, 0.1, 0.2], [0.9, 0.5, 0.7]],
    "other": [[0.4, 0.8, 0.6], [0.25, 0.15, 0.35]],
}


def dots_of(ax):
    """Where there are marks without a name: a line of medians has one."""
    return {
        (round(float(x), 3), y)
        for line in ax.lines
        if line.get_label().startswith("_")
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }


def test_each_line_is_the_median_of_its_seeds():
    ax = Figure().subplots()
    drawn = curves(ax, [75, 150], ARMS, xlabel="steps", ylabel="loss")
    lines = {line.get_label(): line for line in ax.lines}
    for name, many in ARMS.items():
        expected = [median(seeds) for seeds in many]
        assert drawn[name] == expected == list(lines[name].get_ydata())
        assert list(lines[name].get_xdata()) == [75, 150]
    seeds = {
        (x, y)
        for many in ARMS.values()
        for x, one in zip([75, 150], many, strict=True)
        for y in one
    }
    assert dots_of(ax) == seeds
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("steps", "loss")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["75", "150"]


def test_each_bar_is_the_median_of_its_seeds():
    ax = Figure().subplots()
    drawn = bars(ax, ARMS, ylabel="share")
    heights = [bar.get_height() for bar in ax.patches]
    medians = [median(seeds) for many in ARMS.values() for seeds in many]
    assert heights == pytest.approx(medians)
    assert [x for many in drawn.values() for x in many] == medians
    middles = [bar.get_x() + bar.get_width() / 2 for bar in ax.patches]
    assert middles == pytest.approx([-0.15, 0.15, 0.85, 1.15])
    every = [seeds for many in ARMS.values() for seeds in many]
    seeds = {
        (round(x, 3), y)
        for x, one in zip(middles, every, strict=True)
        for y in one
    }
    assert dots_of(ax) == seeds
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [*ARMS]
