"""The lab of the page on Reformer: who lands in whose bucket.

Sixteen tokens, each a direction in the plane, that is both its query and its
key. The reader chooses buckets, rounds, another draw and how long the chunks
are, turns the last token, and sees which keys a query finds, and how much
weight full attention would have given to them.
"""

import math
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.efficient.reformer import lsh_buckets
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice, Flag, Whole
from selfattn.plots.colours import NEUTRAL, K, Q

N = 16
ROUNDS = 4  # drawn at a time, however many are looked at
SIZE = 3.0  # how long a query is
# Where each token points, in sixteenths of a turn; the last one's may change.
POINTS = [0, 9, 1, 4, 10, 5, 12, 0, 8, 15, 2, 9, 13, 6, 1]


class Found(NamedTuple):
    """What the query finds, and what it misses."""

    buckets: list[list[int]]  # (rounds, 16): of each token in each round
    order: list[int]  # the tokens, sorted for the first round
    seen: list[bool]  # by the query: those that it may look at
    lost: int  # share a bucket with it, and were cut off by the chunks
    allowed: int  # how many others it might see at all
    weight: float  # what full attention gives to those that are seen
    pairs: int  # of a query and a key, of all queries


class ReformerLab(Lab):
    """Tokens in a plane, hashed, sorted and cut into chunks.

    Attributes:
        buckets: how many buckets there are.
        rounds: how many draws of directions are used.
        draw: which random directions.
        chunk: how many sorted tokens are together; each chunk sees itself
            and the one before. 16 cuts nothing.
        causal: whether nobody sees what comes later.
        token: the one that asks, from 0.
        last: where the last token points, in sixteenths of a turn.
    """

    buckets = Choice(4, [1, 2, 4, 8])
    rounds = Whole(1, 1, ROUNDS)
    draw = Whole(0, 0, 3)
    chunk = Choice(16, [2, 4, 8, 16])
    causal = Flag(False)
    token = Whole(9, 0, N - 1)
    last = Whole(11, 0, 15)

    def state(self) -> Found:
        """What the page shows, computed by the package."""
        return state(**self.values())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now = self.state()
        return (
            f"Sixteen tokens on a circle, each where it points: token "
            f"{self.token + 1} sees {sum(now.seen)} of {now.allowed} others, "
            f"to which full attention gives {now.weight:.0%} of its weight."
        )

    def figure(self) -> Figure:
        """The circle: the query, what it sees, and the rest."""
        now = self.state()
        figure = Figure(figsize=(3.2, 3.2), layout="constrained")
        ax = figure.subplots()
        turns: list[int] = [*POINTS, self.last]
        for i, (x, y) in enumerate(directions(self.last).tolist()):
            far = 1 + 0.21 * turns[:i].count(turns[i])
            colour = K if now.seen[i] else NEUTRAL
            colour = Q if i == self.token else colour
            ax.plot(far * x, far * y, "o", color=colour, ms=13)
            number = ax.text(far * x, far * y, str(i + 1), ha="center")
            number.set(va="center", size=8, color="white", weight="bold")
        ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
        ax.axis("off")
        return figure


def directions(last: int) -> Tensor:
    """Where the tokens point, (16, 2)."""
    turns = torch.tensor([*POINTS, last], dtype=torch.float64)
    angles = turns * math.tau / 16 + 0.1
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


def state(
    *,
    buckets: int,
    rounds: int,
    draw: int,
    chunk: int,
    causal: bool,
    token: int,
    last: int,
) -> Found:
    """Hash, sort, cut and look; see `ReformerLab`."""
    x = directions(last)
    options = {"n_buckets": buckets, "n_rounds": ROUNDS, "seed": draw}
    found = lsh_buckets(x, **options)[:rounds]
    orders = found.argsort(dim=-1, stable=True)
    i, j = torch.arange(N)[:, None], torch.arange(N)
    others = (j < i) if causal else (j != i)
    alike = (found[:, :, None] == found[:, None, :]) & others
    seen = (alike & together(orders, chunk)).any(dim=0)
    lost = alike.any(dim=0) & ~seen
    powers = (SIZE * (x @ x[token]) / math.sqrt(2)).exp() * others[token]
    shown = (powers * seen[token]).sum() / powers.sum().clamp(min=1e-300)
    return Found(
        found.tolist(),
        orders[0].tolist(),
        seen[token].tolist(),
        int(lost[token].sum()),
        int(others[token].sum()),
        shown.item(),
        int(seen.sum()),
    )


def together(orders: Tensor, chunk: int) -> Tensor:
    """Whether a key is in the query's chunk or the one before, by rounds."""
    piece = orders.argsort(dim=-1) // chunk
    before = piece[:, :, None] - piece[:, None, :]
    return (before == 0) | (before == 1)
