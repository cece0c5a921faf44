"""The lab of the page on Linformer: whose weight a mixture passes on.

Sixteen tokens, each a direction in the plane, that is its query, its key and
its value. The reader chooses how many mixtures there are and of which kind,
who asks, how sharply, and where the last token points; and sees the weights of
attention above those that the mixtures stand for.
"""

import math
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.efficient.linformer import MeanPooling, linformer_weights
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice, Number, Whole
from selfattn.plots.colours import NEUTRAL, K, Q

N = 16
DRAWS = 9
START = 30203  # of the generator; a draw is so many times as far
MODULUS = 2147483647
# Where each token but the last points, in sixteenths of a turn.
TEXTS = {
    "any order": [0, 9, 1, 4, 10, 5, 12, 0, 8, 15, 2, 9, 13, 6, 1],
    "neighbours alike": [0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10],
}


class Seen(NamedTuple):
    """What the lab shows."""

    weights: list[float]  # of attention, on the tokens
    shares: list[float]  # on the mixtures
    stands: list[float]  # what these are on the tokens; some below zero
    best: int  # the token that attention gives most to
    off: float  # the difference of outputs over attention's output
    later: float  # the share of tokens behind the query in `stands`


class LinformerLab(Lab):
    """A query's weights, by attention and by way of some mixtures.

    Attributes:
        text: whether neighbours point the same way.
        mixtures: how many there are.
        kind: means of neighbours, or random.
        draw: which random mixtures.
        token: the one that asks, from 0.
        length: of the queries; long ones are sharp.
        last: where the last token points, in sixteenths of a turn.
    """

    text = Choice("any order", list(TEXTS))
    mixtures = Choice(4, [1, 2, 4, 8, 16])
    kind = Choice("means", ["means", "random"])
    draw = Whole(1, 1, DRAWS)
    token = Whole(9, 0, N - 1)
    length = Number(4.0, 0.0, 12.0, 1.0)
    last = Whole(11, 0, 15)

    def seen(self) -> Seen:
        """What the page shows, in float64."""
        return seen(**self.values())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now = self.seen()
        return (
            f"Sixteen tokens; token {self.token + 1} asks. Attention gives "
            f"{now.weights[now.best]:.0%} to token {now.best + 1}, and "
            f"{self.mixtures} mixtures, {self.kind}, stand for "
            f"{now.stands[now.best]:.0%} on it. Their output is "
            f"{now.off:.2f} of attention's size away from it."
        )

    def figure(self) -> Figure:
        """Two rows of bars: attention's weights, and the mixtures'."""
        now = self.seen()
        figure = Figure(figsize=(4.4, 2.8), layout="constrained")
        axes = figure.subplots(2, sharex=True, sharey=True)
        names = ("attention", f"{self.mixtures} mixtures")
        rows = (now.weights, now.stands)
        for ax, name, row in zip(axes, names, rows, strict=True):
            colours = [Q if i == self.token else K for i in range(N)]
            ax.bar(range(1, N + 1), row, color=colours)
            ax.axhline(0, color=NEUTRAL, lw=0.8)
            ax.set_ylabel(name)
        axes[1].set_xlabel("token")
        return figure


def directions(text: str, last: int) -> Tensor:
    """Where the tokens point, (16, 2)."""
    turns = torch.tensor([*TEXTS[text], last], dtype=torch.float64)
    angles = turns * math.tau / N + 0.1
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


def random_mixtures(draw: int, m: int) -> Tensor:
    """Normal numbers of variance 1/m, (m, 16), in float64.

    From the generator of Park and Miller, which is exact in JavaScript, too,
    by the rule of Box and Muller: a length and an angle make two of them.

    Args:
        draw: which, from 1.
        m: how many mixtures.
    """
    state = START * draw % MODULUS
    found: list[float] = []
    while len(found) < m * N:
        state = state * 16807 % MODULUS
        length = math.sqrt(-2 * math.log(state / MODULUS))
        state = state * 16807 % MODULUS
        angle = math.tau * state / MODULUS
        found += [length * math.cos(angle), length * math.sin(angle)]
    return torch.tensor(found, dtype=torch.float64).view(m, N) / math.sqrt(m)


def seen(
    *,
    text: str,
    mixtures: int,
    kind: str,
    draw: int,
    token: int,
    length: float,
    last: int,
) -> Seen:
    """Mix, and let one token ask; see `LinformerLab`."""
    x = directions(text, last)
    mix = random_mixtures(draw, mixtures)
    if kind == "means":
        mix = MeanPooling(mixtures)(torch.eye(N, dtype=mix.dtype))
    query = length * x[token : token + 1]
    [weights] = linformer_weights(query, x, torch.nn.Identity())
    [shares] = linformer_weights(query, mix @ x, torch.nn.Identity())
    stands = shares @ mix
    output = weights @ x
    size = output.norm().clamp(min=1e-300)
    sizes = stands.abs()
    return Seen(
        weights.tolist(),
        shares.tolist(),
        stands.tolist(),
        int(weights.argmax()),
        ((stands @ x - output).norm() / size).item(),
        (sizes[token + 1 :].sum() / sizes.sum()).item(),
    )
