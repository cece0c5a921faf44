"""Figures of the chapter on masks."""

import math
from collections.abc import Mapping, Sequence

from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from torch import Tensor

from selfattn.plots.colours import NEUTRAL, K, Q

ARMS = (
    "causal",
    "late, renormalised",
    "late",
    "filled with 0",
    "reversed",
    "none",
)
KINDS = {"read": (Q, "o"), "served": (K, "s")}
FLOOR = 1e-3  # losses below it are drawn on the lower edge


def mask_grid(ax: Axes, mask: Bool[Tensor, "n_q n_k"], *, title: str) -> Axes:
    """A mask as squares: dark where the query may look at the key.

    Args:
        ax: where to draw.
        mask: True where a query may attend.
        title: the mask's name.
    """
    n_q, n_k = mask.shape
    two = ListedColormap(["white", NEUTRAL])
    ax.imshow(mask.tolist(), cmap=two, vmin=0, vmax=1)
    ax.set_xticks([x - 0.5 for x in range(1, n_k)], minor=True)
    ax.set_yticks([y - 0.5 for y in range(1, n_q)], minor=True)
    ax.grid(which="minor", color="0.85")
    ax.tick_params(which="both", length=0)
    ax.set_xticks(range(n_k))
    ax.set_yticks(range(n_q))
    ax.tick_params(labelsize=9)
    ax.set_title(title, fontsize=10)
    ax.set_xlabel("key", color=K)
    ax.set_ylabel("query", color=Q)
    return ax


def losses(ax: Axes, runs: Sequence[Mapping]) -> Axes:
    """Loss per token for each way of masking, read and served.

    Args:
        ax: where to draw.
        runs: rows of the measurement, with arm, seed, read and served.
    """
    for place, arm in enumerate(ARMS):
        for step, (kind, (colour, mark)) in enumerate(KINDS.items()):
            seeds = [run[kind] for run in runs if run["arm"] == arm]
            ax.plot(
                [place + 0.3 * (step - 0.5)] * len(seeds),
                [max(loss, FLOOR) for loss in seeds],
                mark,
                color=colour,
                markersize=4,
                fillstyle="none",
                label=kind if place == 0 else None,
            )
    ax.axhline(math.log(2), color=NEUTRAL, label="ln 2")
    ax.set_yscale("log")
    ax.set_ylim(0.7 * FLOOR, 50)
    ax.set_yticks(
        [FLOOR, 0.01, 0.1, 1, 10], ["0.001 or less", "0.01", "0.1", "1", "10"]
    )
    ax.set_xticks(range(len(ARMS)), [arm.replace(", ", ",\n") for arm in ARMS])
    ax.set(xlabel="mask", ylabel="loss per token")
    ax.legend(frameon=False, loc="lower left", fontsize=9)
    return ax
