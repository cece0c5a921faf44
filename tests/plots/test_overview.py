"""The figures of the overview hold the numbers that they were given."""

import pytest
from matplotlib.figure import Figure

from selfattn.plots import overview

NAMES = [
    f"{name} {size}".strip()
    for name, look in overview.LOOKS.items()
    for size in look.sizes
]


def runs_of(lengths=(128,), inputs=("near",)):
    """Runs of which every number is another."""
    made = []
    for n in lengths:
        for seed in range(3):
            costs = {"attention, operations": 1000.0 * n}
            for place, name in enumerate(NAMES):
                costs[f"{name}, operations"] = 10.0 * n * (place + 1)
            made.append({"task": "count", "n": n, "seed": seed} | costs)
            for kind in inputs:
                off = {
                    name: 0.1 * (place + 1) + 0.01 * seed
                    for place, name in enumerate(NAMES)
                }
                off |= {"average": 0.9, "flash": 0.0}
                made.append({"task": "error", "n": n, "inputs": kind} | off)
    return made


def test_a_mark_stands_at_its_cost_and_error():
    ax = Figure().subplots()
    drawn = overview.errors(ax, runs_of(), n=128, inputs="near", causal=False)
    assert list(drawn) == list(overview.LOOKS)
    place = NAMES.index("window 16")
    share, error = drawn["window"][0]
    assert share == pytest.approx((place + 1) / 100)
    assert error == pytest.approx(0.1 * (place + 1) + 0.01)
    assert drawn["flash"] == [(0.01, 0.0)]
    marks = {
        line.get_label(): line
        for line in ax.lines
        if not line.get_label().startswith("_")
    }
    xs, ys = marks["window"].get_data()
    assert list(zip(xs, ys, strict=True)) == drawn["window"]
    assert list(marks["flash"].get_ydata()) == [overview.FLOOR]
    assert list(ax.lines[-1].get_ydata()) == [0.9, 0.9]


def test_what_has_no_causal_order_is_left_out():
    runs = [
        {
            f"{name}, causal" if "Linformer" not in name else name: x
            for name, x in run.items()
            if name not in ("task", "n", "seed", "inputs")
            and not name.endswith("operations")
        }
        | {x: run[x] for x in ("task", "n", "inputs")}
        for run in runs_of()
        if run["task"] == "error"
    ]
    for run in runs_of():
        if run["task"] == "count":
            costs = {
                name.replace(", operations", ", causal, operations"): x
                for name, x in run.items()
            }
            runs.append(costs)
    ax = Figure().subplots()
    drawn = overview.errors(ax, runs, n=128, inputs="near", causal=True)
    assert "Linformer" not in drawn and "window" in drawn


def test_a_panel_for_each_length_and_kind():
    axes = [[*row] for row in Figure().subplots(2, 2)]
    runs = runs_of((128, 512), ("near", "far"))
    found = overview.panels(
        axes, runs, lengths=(128, 512), inputs={"near": False, "far": False}
    )
    assert set(found) == {
        (n, kind) for n in (128, 512) for kind in ("near", "far")
    }
    assert [ax.get_title() for ax in axes[0]] == ["128 tokens", "512 tokens"]
    assert axes[1][0].get_ylabel() == "error, far"


def test_what_lies_on_another_can_be_told_from_it():
    looks = overview.LOOKS
    told = {(x.mark, x.hollow) for x in looks.values()}
    assert len(told) == len(looks)
    lines = [(x.colour, x.dashes) for x in looks.values() if len(x.sizes) > 1]
    assert len(set(lines)) == len(lines)
    ax = Figure().subplots()
    overview.errors(ax, runs_of(), n=128, inputs="near", causal=False)
    marks = {line.get_label(): line for line in ax.lines}
    around, inside = marks["Longformer"], marks["window"]
    assert around.get_markersize() > inside.get_markersize()
    assert around.get_markerfacecolor() == "none"


def test_two_losses_stand_beside_each_other():
    runs = [
        {
            "task": "letters",
            "rate": 0.01,
            "attention, 50": 1.0,
            "window put in, 50": 2.0 + seed / 10,
            "window, 50": 1.5 + seed / 10,
        }
        for seed in range(3)
    ]
    ax = Figure().subplots()
    drawn = overview.two_losses(ax, runs, arms=["window"], rate=0.01, steps=50)
    assert drawn == {"window": (2.1, 1.6)}
    put_in, trained = ax.lines[0], ax.lines[1]
    assert list(put_in.get_ydata()) == [2.0, 2.1, 2.2]
    assert list(trained.get_ydata()) == [1.5, 1.6, 1.7]
    assert put_in.get_xdata()[0] < trained.get_xdata()[0]
