"""The lab of the page on Swin: who has heard whom, through which windows.

A picture of 6 by 12 tokens. The reader chooses the windows, whether those of
every second layer are shifted, how many layers there are, and a token, and
sees after how many layers it can have heard each of the others.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice, Flag, Whole
from selfattn.plots.colours import K, Q

ROWS, COLUMNS = 6, 12


class Heard(NamedTuple):
    """What the token can have heard, and what was looked at for it."""

    after: list[int]  # (72,): the layers it takes; 0 itself, -1 if not heard
    windows: list[int]  # (72,): whose window each is in, in the last layer
    touching: int  # tokens that touch it, at a side or at a corner
    met: int  # of them, those that share a window with it in some layer
    pairs: int  # looked at, in all layers
    full: int  # as many as if all saw all


class SwinLab(Lab):
    """A stack of layers with windows, and what one token can have heard.

    Attributes:
        window: rows of a window, and columns.
        layers: how many layers there are.
        shifted: whether every second layer's windows are moved by half.
        masked: whether tokens that only the cyclic shift has brought
            together are hidden from each other.
        row: of the token, from 0.
        column: of the token, from 0.
    """

    window = Choice(3, [2, 3, 6])
    layers = Whole(2, 1, 6)
    shifted = Flag(True)
    masked = Flag(True)
    row = Whole(2, 0, ROWS - 1)
    column = Whole(2, 0, COLUMNS - 1)

    def state(self) -> Heard:
        """What the page shows, computed by the package."""
        return state(**self.values())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now = self.state()
        heard = sum(layer >= 0 for layer in now.after)
        return (
            f"A picture of 6 by 12 tokens in windows of {self.window} by "
            f"{self.window}: the token in row {self.row + 1}, column "
            f"{self.column + 1}, has heard {heard} of 72 tokens after "
            f"{self.layers} layers, and shared a window with {now.met} of "
            f"the {now.touching} that touch it."
        )

    def figure(self) -> Figure:
        """The picture, the darker the sooner heard."""
        figure = Figure(figsize=(5.4, 2.9), layout="constrained")
        ax = figure.subplots()
        for n, layer in enumerate(self.state().after):
            down, right = divmod(n, COLUMNS)
            colour = Q if layer == 0 else K
            alpha = 0.06 if layer < 0 else 1 / max(1, layer)
            place = right + 1, 0.86, 0.86, down + 0.57
            ax.bar(*place, color=colour, alpha=alpha)
        ax.set(xlim=(0.5, COLUMNS + 0.5), ylim=(ROWS + 0.5, 0.5))
        ax.set(xlabel="column", ylabel="row", aspect="equal")
        ax.set_xticks(range(1, COLUMNS + 1))
        ax.set_yticks(range(1, ROWS + 1))
        ax.spines[["top", "right"]].set_visible(False)
        return figure


def numbers(window: int, shift: int, *, masked: bool) -> Tensor:
    """Whose window each token is in, (72,): equal numbers, equal window."""
    n = torch.arange(ROWS * COLUMNS)
    down, right = n // COLUMNS - shift, n % COLUMNS - shift
    if not masked:  # the shift goes round, and nothing is hidden
        down, right = down % ROWS, right % COLUMNS
    return (down // window + 1) * (COLUMNS + 1) + right // window + 1


def touches(row: int, column: int) -> Bool[Tensor, "72"]:
    """Which tokens touch one, at a side or at a corner."""
    n = torch.arange(ROWS * COLUMNS)
    down, right = (n // COLUMNS - row).abs(), (n % COLUMNS - column).abs()
    return torch.maximum(down, right) == 1


def state(
    *,
    window: int,
    layers: int,
    shifted: bool,
    masked: bool,
    row: int,
    column: int,
) -> Heard:
    """Follow what a token hears back through the layers; see `SwinLab`."""
    shifts = [window // 2 if shifted and i % 2 else 0 for i in range(layers)]
    every = [numbers(window, shift, masked=masked) for shift in shifts]
    masks = [one[:, None] == one for one in every]
    token = row * COLUMNS + column
    after = torch.full((ROWS * COLUMNS,), -1)
    for last in range(layers, 0, -1):
        heard = torch.arange(ROWS * COLUMNS) == token
        for mask in reversed(masks[:last]):
            heard = (mask & heard).any(dim=-1)
        after[heard] = last
    after[token] = 0
    beside = touches(row, column)
    met = torch.stack([mask[token] for mask in masks]).any(dim=0)
    return Heard(
        after.tolist(),
        every[-1].tolist(),
        int(beside.sum()),
        int((met & beside).sum()),
        sum(int(mask.sum()) for mask in masks),
        layers * (ROWS * COLUMNS) ** 2,
    )
