"""The lab of the chapter on the scale.

One query and 64 keys of random features, always the same ones. The reader
chooses how many features there are and what the scores are divided by, and
sees the scores spread and the weights sharpen.
"""

from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.dot_product import attention_weights
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.park_miller import fixed_numbers
from selfattn.labs.machinery.settings import Choice, Whole
from selfattn.plots import colours

N_QUERIES, N_KEYS, WIDEST = 8, 64, 1024
LIMIT, BIN = 10, 1  # the histogram's end, and the width of a bar

EXPONENTS = {"none": 0.0, "root": -0.5, "whole": -1.0}
WORDS = {"none": "nothing", "root": "√dₖ", "whole": "dₖ"}


class Row(NamedTuple):
    """One query's scores and weights, and how sharp they are."""

    scaled: Tensor  # scores after the division, (64,)
    weights: Tensor  # their softmax, (64,)
    deviation: float  # the root of the mean square of the scaled scores
    peak: float  # the largest weight
    entropy: float  # of the weights, in nats
    slope: float  # the Frobenius norm of the softmax's Jacobian


class ScalingLab(Lab):
    """Scores and weights of a random query, by width and divisor.

    Attributes:
        d_k: how many features a query and a key have.
        divisor: what the scores are divided by: "none" (nothing), "root"
            (√d_k) or "whole" (d_k).
        query: which of eight queries, from 0.
    """

    d_k = Choice(64, [2**e for e in range(11)])
    divisor = Choice("root", list(EXPONENTS))
    query = Whole(0, 0, N_QUERIES - 1)

    def row(self) -> Row:
        """What the page shows, computed by the package in float64."""
        return row(**self.values())

    def shown(self) -> dict[str, Any]:
        """All settings: they are few."""
        return self.values()

    def describe(self) -> str:
        """The numbers of the picture, in the order of its parts."""
        now = self.row()
        return (
            f"A histogram and a bar chart. Above, the scores of query "
            f"{self.query + 1} with 64 keys of {self.d_k} features, divided "
            f"by {WORDS[self.divisor]}, of typical size {now.deviation:.2f}. "
            f"Below, their weights: the largest is {now.peak:.3f}, the "
            f"entropy {now.entropy:.2f}, the Jacobian's norm {now.slope:.3f}."
        )

    def figure(self) -> Figure:
        """The histogram of the scores, and the weights, as they are now."""
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        above, below = figure.subplots(2, 1)
        draw_scores(above, self)
        draw_weights(below, self)
        return figure


def row(*, d_k: int, divisor: str, query: int) -> Row:
    """One query among its keys, in float64; see `ScalingLab`."""
    q, k = FEATURES[[query], :d_k], FEATURES[N_QUERIES:, :d_k]
    scale = d_k ** EXPONENTS[divisor]
    scaled = (q @ k.mT)[0] * scale
    weights = attention_weights(q, k, scale=scale)[0]
    # 1 - p is what the others have; as a difference it would lose its digits.
    others = (1 - torch.eye(N_KEYS).double()) @ weights
    jacobian = -weights[:, None] * weights[None, :]
    jacobian.fill_diagonal_(0).add_((weights * others).diag())
    return Row(
        scaled,
        weights,
        scaled.square().mean().sqrt().item(),
        weights.amax().item(),
        torch.special.entr(weights).sum().item(),
        jacobian.norm().item(),
    )


def features() -> Tensor:
    """Eight queries, then 64 keys, 1024 features each, always the same.

    Each is one of -1.5, -1, … 1.5; their variance is one.
    """
    count = (N_QUERIES + N_KEYS) * WIDEST
    numbers = fixed_numbers(20170612, count)
    return torch.tensor(numbers, dtype=torch.float64).view(-1, WIDEST)


FEATURES = features()


def counts(scaled: Tensor) -> list[int]:
    """How many scores are in each bar: below -10, 20 bars, from 10 up."""
    place = torch.floor(scaled / BIN).clamp(-LIMIT - 1, LIMIT) + LIMIT + 1
    return torch.bincount(place.long(), minlength=2 * LIMIT + 2).tolist()


def draw_scores(ax: Axes, lab: ScalingLab) -> Axes:
    """The histogram; its outermost bars hold all that lies further out."""
    heights = counts(lab.row().scaled)
    places = [BIN * (i - LIMIT - 0.5) for i in range(len(heights))]
    shades = ["0.35", *["0.6"] * (len(heights) - 2), "0.35"]
    ax.bar(places, heights, width=0.9 * BIN, color=shades)
    ax.set(title=f"64 scores, divided by {WORDS[lab.divisor]}", ylim=(0, 64))
    ends = [-LIMIT - 0.5, -5, 0, 5, LIMIT + 0.5]
    ax.set_xticks(ends, ["below −10", "−5", "0", "5", "above 10"])
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def draw_weights(ax: Axes, lab: ScalingLab) -> Axes:
    """One bar a key, and the line where all would be alike."""
    ax.bar(range(N_KEYS), lab.row().weights.tolist(), color=colours.K)
    ax.axhline(1 / N_KEYS, color=colours.NEUTRAL, lw=0.8)
    ax.set(title=f"Weights of query {lab.query + 1}", ylim=(0, 1))
    ax.set(xticks=[], xlabel="key")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
