"""Figures of the chapter on models: what was learned, and what was written."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from matplotlib.axes import Axes

from selfattn.plots.colours import NEUTRAL, OUTPUT, K, Q, V

Runs = Sequence[Mapping[str, Any]]

ARMS = {"Transformer": (Q, "o"), "LSTM": (K, "s")}
BUDGETS = (100, 200, 400)
WAYS = (
    "greedy",
    "0.5",
    "1",
    "1.5",
    "1, top 3",
    "1, top .9",
    "1.5, top 3",
    "1.5, top .9",
)


def at_best_rate(runs: Runs, arm: str) -> list[Mapping[str, Any]]:
    """The runs of an arm at the rate whose median loss is least at the end."""
    own = [run for run in runs if run["arm"] == arm]
    last = f"loss, {BUDGETS[-1]}"

    def end(rate: float) -> float:
        return median(run[last] for run in own if run["rate"] == rate)

    best = min({run["rate"] for run in own}, key=end)
    return [run for run in own if run["rate"] == best]


def learning(ax: Axes, runs: Runs, *, floor: float) -> Axes:
    """Loss by steps, each arm at its best rate; every seed is a mark.

    Args:
        ax: where to draw.
        runs: those of the language, with arm, rate, seed and the losses.
        floor: the entropy of the language.
    """
    for arm, (colour, mark) in ARMS.items():
        own = at_best_rate(runs, arm)
        losses = [[run[f"loss, {b}"] for run in own] for b in BUDGETS]
        middle = [median(row) for row in losses]
        rate = str(own[0]["rate"]).removeprefix("0")
        ax.plot(BUDGETS, middle, color=colour, label=f"{arm}, rate {rate}")
        for budget, row in zip(BUDGETS, losses, strict=True):
            ax.plot([budget] * len(row), row, mark, color=colour, ms=4)
    tables = [run for run in runs if run["arm"] == "bigram"]
    table = median(run[f"loss, {BUDGETS[-1]}"] for run in tables)
    ax.axhline(table, color=NEUTRAL, ls="--", label="bigram")
    ax.axhline(floor, color=NEUTRAL, ls=":", label="entropy")
    ax.set(xlabel="steps", ylabel="nats a letter", ylim=(0.2, 1.5))
    ax.set_xticks(BUDGETS)
    ax.spines[["top", "right"]].set_visible(False)
    # Below the line of the bigrams, which would cross it.
    ax.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.86))
    return ax


def ways(ax: Axes, runs: Runs) -> Axes:
    """How many written sentences are right, by the way of choosing.

    Args:
        ax: where to draw.
        runs: those of the Transformer, at one rate, with their shares.
    """
    for row, name in enumerate(WAYS):
        shares = [run[f"written, {name}"] for run in runs]
        colour = OUTPUT if name == "greedy" else V if "top" in name else Q
        ax.plot(shares, [row] * len(shares), "o", color=colour, alpha=0.5)
        ax.plot(median(shares), row, "|", color=colour, ms=16, mew=2.5)
    names = [way if way == "greedy" else f"T = {way}" for way in WAYS]
    ax.set_yticks(range(len(WAYS)), names)
    ax.invert_yaxis()
    ax.set(xlabel="share that the grammar knows", xlim=(-0.03, 1.03))
    ax.grid(axis="x", color="0.85")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
