"""Figures of the page on windows: losses by budget, look-ups by distance."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from matplotlib.axes import Axes

from selfattn.plots.colours import NEUTRAL, OUTPUT, K, Q, V

Runs = Iterable[dict[str, Any]]
STEPS = (75, 150, 300)
# What is drawn of the language: its words, the window in training, the loss.
ARMS = (
    ("full attention", 0, "loss", Q),
    ("a window of 4 put into it", 0, "within 4", K),
    ("trained within a window of 4", 4, "loss", V),
)
LOOK_UPS = ("both sides", "causal", "global", "full last")
HOPS = ("hop 1", "hop 2", "hop 3")


def losses(
    ax: Axes, runs: Runs, *, rate: float, floor: float
) -> dict[str, list[float]]:
    """The loss per letter after each budget: every seed, and the medians.

    Args:
        ax: where to draw.
        runs: those of the language.
        rate: the learning rate whose runs are drawn.
        floor: the least loss that there can be.

    Returns:
        For each arm, its medians.
    """
    runs = [run for run in runs if run.get("rate") == rate]
    drawn = {}
    for place, (words, window, name, colour) in enumerate(ARMS):
        mine = [run for run in runs if run.get("window") == window]
        seeds = [[run[f"{name}, {x}"] for run in mine] for x in STEPS]
        drawn[words] = [median(many) for many in seeds]
        ax.plot(STEPS, drawn[words], color=colour, label=words)
        for steps, many in zip(STEPS, seeds, strict=True):
            beside = [steps + 3 * (place - 1)] * len(many)
            ax.plot(beside, many, "o", color=colour, ms=3, alpha=0.6)
    ax.axhline(floor, color=NEUTRAL, lw=0.8, ls="--")
    ax.set(xlabel="steps of training", ylabel="loss per letter, nats")
    ax.set_xticks(STEPS)
    ax.legend(frameon=False, fontsize=9)
    return drawn


def found(
    ax: Axes, runs: Runs, *, rate: float, steps: int, names: Sequence[str]
) -> dict[str, list[float]]:
    """The share of look-ups that were right: every seed, and the medians.

    Args:
        ax: where to draw.
        runs: those of the look-up.
        rate: the learning rate whose runs are drawn.
        steps: after which budget.
        names: what stands below each arm of `LOOK_UPS`.

    Returns:
        For each arm, its medians by hop.
    """
    runs = [run for run in runs if run.get("rate") == rate]
    drawn = {}
    for place, arm in enumerate(LOOK_UPS):
        mine = [run for run in runs if run.get("arm") == arm]
        seeds = [[run[f"{hop}, {steps}"] for run in mine] for hop in HOPS]
        drawn[arm] = [median(many) for many in seeds]
        for i, many in enumerate(seeds):
            x = place + 0.25 * (i - 1)
            ax.bar(x, drawn[arm][i], width=0.2, color=OUTPUT, alpha=0.3)
            ax.plot([x] * len(many), many, "o", color=(Q, K, V)[i], ms=3)
    ax.axhline(1 / 8, color=NEUTRAL, lw=0.8, ls="--")
    ax.set_xticks(range(len(LOOK_UPS)), names)
    ax.set(ylim=(0, 1.05), ylabel="share right, by hops 1, 2, 3")
    return drawn
