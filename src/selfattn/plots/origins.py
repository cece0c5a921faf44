"""Figures of the chapter on origins: what arrives, from where, after what."""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from selfattn.plots.colours import (
    NEUTRAL,
    OUTPUT,
    K,
    Q,
    V,
    each_with_a_look,
)

LEAST = 1e-16  # what is drawn of nothing
LOOKS: list[dict[str, Any]] = [
    {"color": Q, "ls": "-"},
    {"color": Q, "ls": "--"},
    {"color": V, "ls": "-"},
    {"color": V, "ls": "--"},
    {"color": NEUTRAL, "ls": "-"},
    {"color": NEUTRAL, "ls": "--"},
    {"color": K, "ls": "-"},
]
NETWORKS = {
    "convolution": (NEUTRAL, "s"),
    "recurrent": (Q, "^"),
    "attention": (K, "o"),
}


def by_distance(ax: Axes, curves: Mapping[str, Sequence[float]]) -> Axes:
    """Gradients against the distance, a line a network, in powers of ten.

    Args:
        ax: where to draw.
        curves: by name, a gradient for each distance from 0.
    """
    for (name, curve), look in each_with_a_look(curves.items(), LOOKS):
        ax.plot([max(x, LEAST) for x in curve], label=name, lw=1.6, **look)
    ax.set_yscale("log")
    ax.set(xlabel="how far back the token stands", ylabel="gradient")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def alignment(
    ax: Axes, weights: Float[Tensor, "n_q n_k"], source: str, target: str
) -> Axes:
    """Where each written character looked, as a heat map.

    Args:
        ax: where to draw.
        weights: a row for each written character.
        source: the text that was read.
        target: the text that was written.

    Raises:
        ValueError: if there is not one weight for each pair of characters.
    """
    if tuple(weights.shape) != (len(target), len(source)):
        raise ValueError(
            "weights must be of each character of target and source, "
            f"({len(target)}, {len(source)}), but they are "
            f"{tuple(weights.shape)}"
        )
    ax.imshow(weights.tolist(), cmap="Greys", vmin=0, vmax=1, aspect="auto")
    ax.set_xticks(range(len(source)), list(source))
    ax.set_yticks(range(len(target)), list(target))
    ax.set(xlabel="read (keys)", ylabel="written (queries)")
    return ax


def by_examples(
    ax: Axes, runs: Sequence[Mapping], *, question: str, steps: int
) -> Axes:
    """Right answers against the number of examples, a point a run.

    Args:
        ax: where to draw.
        runs: rows of the measurement.
        question: which of the questions to draw.
        steps: after how many steps of training.
    """
    sizes = sorted({run["size"] for run in runs})
    for place, (arm, (colour, mark)) in enumerate(NETWORKS.items()):
        mine = [
            run
            for run in runs
            if (run["arm"], run["question"]) == (arm, question)
        ]
        shift = 1.12 ** (place - 1)
        ax.scatter(
            [run["size"] * shift for run in mine],
            [run[f"right {steps}"] for run in mine],
            color=colour,
            marker=mark,
            s=18,
            label=arm,
        )
    ax.axhline(0.5, color=OUTPUT, lw=0.8, ls=":")
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.set(xlabel="examples", title=question, ylim=(0.42, 1.04))
    return ax
