"""The lab of the page on windows: who can hear a token, layer by layer.

Sixteen tokens and up to six layers, each within a window. The reader chooses
the window, the layers and how many of the first tokens are global, and sees
how far what one token says can travel.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.efficient.longformer import longformer_mask
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Flag, Whole
from selfattn.masks import causal_mask
from selfattn.plots.colours import K

N = 16


class Heard(NamedTuple):
    """Who can have heard the token, and what was looked at for it."""

    heard: list[list[bool]]  # (layers + 1, 16): by each token, after each
    pairs: int  # of a query and a key, in all layers
    full: int  # as many as without a window and without global tokens
    kept: int  # keys that the last token sees, in all layers


class WindowLab(Lab):
    """A stack of layers with a window, and what one token can tell.

    Attributes:
        window: how many keys to each side, the query's own counted.
        layers: how many layers there are.
        causal: whether nobody sees what comes later.
        global_tokens: how many of the first tokens see all and are seen.
        full_last: whether the last layer has no window.
        token: the one that says something, from 0.
    """

    window = Whole(4, 1, N)
    layers = Whole(3, 1, 6)
    causal = Flag(True)
    global_tokens = Whole(0, 0, 3)
    full_last = Flag(False)
    token = Whole(2, 0, N - 1)

    def state(self) -> Heard:
        """What the page shows, computed by the package."""
        return state(**self.values())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now = self.state()
        rows = ", ".join(str(sum(row)) for row in now.heard[1:])
        return (
            f"A grid of 16 tokens across and {self.layers} layers upwards: "
            f"token {self.token + 1} is heard by {rows} tokens after each "
            f"layer. {now.pairs} pairs are looked at, {now.full} without a "
            "window."
        )

    def figure(self) -> Figure:
        """The grid, the input at the bottom."""
        rows = torch.tensor(self.state().heard)
        figure = Figure(figsize=(6.4, 2.4), layout="constrained")
        ax = figure.subplots()
        for layer, i in rows.nonzero().tolist():
            ax.bar(i + 1, 0.8, bottom=layer - 0.4, width=0.8, color=K)
        ax.set(xlim=(0.5, N + 0.5), ylim=(-0.5, len(rows) - 0.5))
        ax.set(xlabel="token", ylabel="after layer")
        ax.set_xticks(range(1, N + 1))
        ax.set_yticks(range(len(rows)))
        ax.spines[["top", "right"]].set_visible(False)
        return figure


def masks(
    *, window: int, layers: int, causal: bool, global_tokens: int, full: bool
) -> list[Bool[Tensor, "16 16"]]:
    """Who may look at whom in each layer."""
    first = range(global_tokens)
    past = causal_mask(N, N) if causal else torch.ones(N, N).bool()
    near = longformer_mask(N, N, window, global_at=first) & past
    return [near] * (layers - full) + [past] * full


def state(
    *,
    window: int,
    layers: int,
    causal: bool,
    global_tokens: int,
    full_last: bool,
    token: int,
) -> Heard:
    """Follow the token through the layers; see `WindowLab`."""
    every = masks(
        window=window,
        layers=layers,
        causal=causal,
        global_tokens=global_tokens,
        full=full_last,
    )
    heard = [torch.arange(N) == token]
    for mask in every:
        heard.append((mask & heard[-1]).any(dim=-1))
    past = causal_mask(N, N).sum() if causal else N * N
    return Heard(
        [row.tolist() for row in heard],
        sum(int(mask.sum()) for mask in every),
        layers * int(past),
        sum(int(mask[-1].sum()) for mask in every),
    )
