"""The figures on windows draw every seed where it was, and the medians."""

from statistics import median

import pytest
from matplotlib.figure import Figure

from selfattn.plots.window import ARMS, HOPS, LOOK_UPS, STEPS, found, losses

RATE = 0.003
LANGUAGE = [
    {"window": window, "rate": rate, "seed": seed}
    | {
        f"{name}, {steps}": rate + 100 / steps + 7.3 * window + seed**2 + extra
        for name, extra in (("loss", 0), ("within 4", 50))
        for steps in STEPS
    }
    for window in (0, 4)
    for rate in (0.001, RATE)
    for seed in range(5)
]
ASKED = [
    {"arm": arm, "rate": RATE, "seed": seed}
    | {
        f"{hop}, 400": (i + seed / 7) / 9 + a / 30
        for i, hop in enumerate(HOPS)
    }
    for a, arm in enumerate(LOOK_UPS)
    for seed in range(5)
]


def test_each_arm_has_its_seeds_and_its_median():
    ax = Figure().subplots()
    drawn = losses(ax, LANGUAGE, rate=RATE, floor=0.3)
    lines = [line for line in ax.lines if len(line.get_xdata()) == 3]
    dots = {
        (round(float(line.get_xdata()[0]) / 75) * 75, float(y))
        for line in ax.lines
        if line.get_marker() == "o"
        for y in line.get_ydata()
    }
    for line, (words, window, name, _) in zip(lines, ARMS, strict=True):
        mine = [
            r for r in LANGUAGE if r["window"] == window and r["rate"] == RATE
        ]
        expected = [median(r[f"{name}, {x}"] for r in mine) for x in STEPS]
        assert drawn[words] == expected == list(line.get_ydata())
        for x in STEPS:
            assert {(x, r[f"{name}, {x}"]) for r in mine} <= dots
    assert len(dots) == 3 * 5 * len(STEPS)
    assert [0.3, 0.3] in [list(line.get_ydata()) for line in ax.lines]


def test_each_bar_is_the_median_of_its_hop():
    ax = Figure().subplots()
    names = ["one", "two", "three", "four"]
    drawn = found(ax, ASKED, rate=RATE, steps=400, names=names)
    heights = iter([bar.get_height() for bar in ax.patches])
    for arm in LOOK_UPS:
        for hop, mine in zip(HOPS, drawn[arm], strict=True):
            many = [r[f"{hop}, 400"] for r in ASKED if r["arm"] == arm]
            assert mine == median(many) == pytest.approx(next(heights))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == names
    assert sum(line.get_marker() == "o" for line in ax.lines) == 4 * 3
