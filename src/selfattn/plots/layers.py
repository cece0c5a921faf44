"""Figures of the chapter on Add & Norm and the feed-forward network."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from torch import Tensor

from selfattn.plots.colours import (
    NEUTRAL,
    OUTPUT,
    K,
    Q,
    V,
    each_with_a_look,
)

Runs = Sequence[Mapping]

LEAST = -15  # the power of ten below which there is nothing but rounding
STYLES = [
    (OUTPUT, "o", "-"),
    (K, "s", "--"),
    (Q, "^", "-."),
    (V, "D", ":"),
    (NEUTRAL, "v", "--"),
]


def by_block(
    ax: Axes,
    runs: Runs,
    quantity: str,
    arms: Mapping[str, Mapping[str, object]],
) -> Axes:
    """A quantity over the blocks: median of the seeds, and their range.

    Args:
        ax: where to draw.
        runs: rows of the measurement, with "<quantity> <block>" in powers
            of ten.
        quantity: "distinct", "path" or "query".
        arms: by its label, the settings of each line.
    """
    for (label, setting), (colour, mark, dash) in each_with_a_look(
        arms.items(), STYLES
    ):
        chosen = [run for run in runs if setting.items() <= run.items()]
        blocks = [i for i in range(13) if f"{quantity} {i}" in chosen[0]]
        table = np.array(
            [[run[f"{quantity} {i}"] for i in blocks] for run in chosen]
        )
        middle = np.median(table, axis=0)
        ax.plot(blocks, middle, mark + dash, ms=4, c=colour, label=label)
        ax.vlines(
            blocks, table.min(axis=0), table.max(axis=0), color=colour, lw=0.8
        )
    ax.set_yticks([-15, -10, -5, 0, 5])
    ax.set_yticklabels(["≤ 10⁻¹⁵", "10⁻¹⁰", "10⁻⁵", "1", "10⁵"])
    ax.set(xlabel="block", xticks=range(0, 13, 2), ylim=(LEAST - 1, 6))
    ax.grid(color=NEUTRAL, alpha=0.2)
    return ax


def success_map(ax: Axes, runs: Runs, arm: str) -> Axes:
    """What was learned by depth and learning rate: seeds that succeed.

    Args:
        ax: where to draw.
        runs: rows of the measurement, with arm, depth, rate, seed and right.
        arm: which of them to draw.
    """
    depths = sorted({run["depth"] for run in runs})
    rates = sorted({run["rate"] for run in runs})
    shares = np.zeros((len(depths), len(rates)))
    for i, depth in enumerate(depths):
        for j, rate in enumerate(rates):
            good, of = learned(runs, arm, depth, rate)
            shares[i, j] = good / of
            ax.text(j, i, f"{good} of {of}", ha="center", va="center")
    # Half the palette, so that black words stay readable on every shade.
    shades = LinearSegmentedColormap.from_list("shades", ["white", V])
    ax.imshow(shares, cmap=shades, vmin=0, vmax=2, aspect="auto")
    ax.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
    ax.set_yticks(range(len(depths)), [str(depth) for depth in depths])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(title=arm, xlabel="learning rate", ylabel="blocks")
    return ax


def learned(runs: Runs, arm: str, depth: int, rate: float) -> tuple[int, int]:
    """How many seeds got 95 % of the tokens right, and of how many."""
    rights = [
        run["right"]
        for run in runs
        if (run["arm"], run["depth"], run["rate"]) == (arm, depth, rate)
    ]
    return sum(right >= 0.95 for right in rights), len(rights)


def activations(
    ax: Axes,
    x: Float[Tensor, " n"],
    curves: Mapping[str, Callable[[Tensor], Tensor]],
) -> Axes:
    """Activation functions over their input.

    Args:
        ax: where to draw.
        x: the inputs.
        curves: the functions, by their names.
    """
    for (name, bend), (colour, _, dash) in each_with_a_look(
        curves.items(), STYLES
    ):
        ax.plot(x.tolist(), bend(x).tolist(), dash, color=colour, label=name)
    ax.axhline(0, color=NEUTRAL, lw=0.6)
    ax.axvline(0, color=NEUTRAL, lw=0.6)
    ax.set(xlabel="what comes in", ylabel="what goes out")
    ax.legend(frameon=False)
    return ax
