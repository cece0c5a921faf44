"""The lab of the page on FlashAttention.

One query reads eight keys, a tile at a time. The reader chooses the scores,
the tiles and how far to read, and sees what has been collected shrink when a
larger score arrives.
"""

from typing import Any, NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.efficient.flash import tiled
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice, Whole
from selfattn.pieces import LOG2_E
from selfattn.plots import colours

N_KEYS = 8
MIXED = [1.0, -0.5, 2.0, 0.5, 1.5, 3.0, -1.0, 0.0]
SCORES = {
    "mixed": MIXED,
    "loud last": [1.0, 0.5, 0.0, 0.5, 1.0, 0.0, 0.5, 6.0],
    "loud first": [6.0, 0.5, 0.0, 0.5, 1.0, 0.0, 0.5, 1.0],
    "alike": [0.0] * N_KEYS,
    "60,000 less": [score - 60_000 for score in MIXED],
}
VALUES = torch.tensor(
    [[1, 0], [0, 2], [3, 1], [-1, 1], [2, 2], [0, -1], [1, 3], [-2, 0]]
).double()


class Read(NamedTuple):
    """What is known of the keys that have been read."""

    m: float | None  # the largest score so far; None before the first
    total: float  # ℓ, the sum of their exponentials, measured against m
    summed: list[float]  # o, the same of the values
    output: list[float]  # o / ℓ
    powers: list[float]  # each key's part of ℓ; 0 if unread or hidden
    shrink: float | None  # what the last tile did to those before it


class FlashLab(Lab):
    """One query on its way along the tiles of keys.

    Attributes:
        scores: the name of the eight scaled scores.
        tiles: how many tiles the keys are cut into.
        read: how many of them have been read.
        position: where the query sits, from 0; the keys after it are hidden.
    """

    scores = Choice("mixed", list(SCORES))
    tiles = Choice(4, [1, 2, 4, 8])
    read = Whole(0, 0, N_KEYS, of="tiles")
    position = Whole(N_KEYS - 1, 0, N_KEYS - 1)

    def state(self) -> Read:
        """What the page shows, computed by the package in float64."""
        return state(**self.values())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now = self.state()
        start = (
            f"Eight keys in {self.tiles} tiles, {self.read} of them read, "
            f"with {self.scores} scores. "
        )
        if now.m is None:
            return start + "Nothing has been collected."
        powers = ", ".join(f"{power:.3f}" for power in now.powers)
        return (
            start + f"The largest score so far is {now.m:.2f}; the keys count "
            f"{powers}, together {now.total:.3f}. The output so far is "
            f"({now.output[0]:.3f}, {now.output[1]:.3f})."
        )

    def figure(self) -> Figure:
        """A bar for each key, as high as it counts now."""
        figure = Figure(figsize=(6.4, 2.4), layout="constrained")
        ax = figure.subplots()
        size = N_KEYS // self.tiles
        places = [j + 0.5 for j in range(N_KEYS)]
        ax.bar(places, self.state().powers, width=0.8, color=colours.K)
        for edge in range(0, N_KEYS + 1, size):
            ax.axvline(edge, color=colours.NEUTRAL, lw=0.8)
        ax.axvspan(self.read * size, N_KEYS, color="0.9")
        ax.set_xticks(places, [str(j + 1) for j in range(N_KEYS)])
        ax.set(xlim=(0, N_KEYS), ylim=(0, 1.05), xlabel="key")
        ax.set_ylabel("part of ℓ,\nmeasured against m")
        ax.spines[["top", "right"]].set_visible(False)
        return figure


def collected(scores: Tensor, keys: int) -> Any:
    """What the package's tiles have after some keys, of one query."""
    # A query of one, and keys that are the scores: their product is they.
    one = torch.ones(1, 1).double()
    return tiled(one, scores[:keys, None], VALUES[:keys], None, None, False)


def state(*, scores: str, tiles: int, read: int, position: int) -> Read:
    """One query after some tiles, in float64; see `FlashLab`."""
    all_scores = torch.tensor(SCORES[scores], dtype=torch.float64)
    size = N_KEYS // tiles
    seen = min(read * size, position + 1)
    before = min((read - 1) * size, position + 1)
    if seen == 0:
        zeros = [0.0, 0.0]
        return Read(None, 0.0, zeros, zeros, [0.0] * N_KEYS, None)
    parts = collected(all_scores, seen)
    m = parts.top.item() / LOG2_E
    powers = [0.0] * N_KEYS
    powers[:seen] = (all_scores[:seen] - m).exp().tolist()
    total, output = parts.total.item(), parts.output[0]
    shrink = None
    if before > 0:
        was = collected(all_scores, before).top.item()
        shrink = 2.0 ** (was - parts.top.item())
    summed = (output * total).tolist()
    return Read(m, total, summed, output.tolist(), powers, shrink)
