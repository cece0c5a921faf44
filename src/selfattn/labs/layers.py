"""The lab of the chapter on layers: what depth does to tokens and gradients.

A stack of blocks with fixed weights. The reader chooses how many there are,
whether a residual path leads past each sublayer, where the norm stands, and
whether there is a feed-forward network, and sees block by block how large the
tokens are, how distinct they still are, and what gradient arrives.
"""

import math
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.dot_product import attention
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.park_miller import fixed_numbers
from selfattn.labs.machinery.settings import Choice, Flag, Whole
from selfattn.layers import LayerNorm, relu
from selfattn.plots import colours

# Five tokens: the query of each, followed by its key. The first three are the
# running numbers of the book.
TOKENS = [[1, 0, 1, 1], [0, 2, 2, 0], [2, 1, 0, 1], [-1, 1, -1, 0]]
TOKENS += [[1, -1, 1, -2]]
UP = [[1, 0, 0, -1], [0, 1, -1, 0], [1, 1, 0, 0], [0, -1, 0, 1]]
UP += [[-1, 0, 1, 0]]
D, D_FF = 4, 16
MOST = 12

# Below this there is nothing but rounding, which differs by machine.
LEAST = 1e-12


class Trace(NamedTuple):
    """Block by block, from the first one's input to the last one's output."""

    size: list[float]  # root mean square of all numbers
    distinct: list[float]  # distance from the tokens' mean, over their size
    path: list[float]  # the gradient's norm, here
    query: list[float]  # at the query matrix of the block that follows


class LayersLab(Lab):
    """A stack of blocks, forward and back.

    Attributes:
        depth: how many blocks there are.
        residual: whether a path leads past each sublayer.
        norm: "none", "pre" (before each sublayer) or "post" (after each sum).
        feed_forward: whether a feed-forward network follows each attention.
        draw: which of the fixed weights, from 1.
    """

    depth = Whole(12, 1, MOST)
    residual = Flag(False)
    norm = Choice("none", ["none", "pre", "post"])
    feed_forward = Flag(False)
    draw = Whole(1, 1, 8)

    def trace(self) -> Trace:
        """What the page shows, computed by the package in float64."""
        return trace(**self.values())

    def describe(self) -> str:
        """The numbers of the picture, in the order of its parts."""
        found = self.trace()
        parts = [
            "a residual path" if self.residual else "no residual path",
            "no norm" if self.norm == "none" else f"{self.norm}-norm",
            ("a" if self.feed_forward else "no") + " feed-forward network",
        ]
        return (
            f"Two charts over {self.depth} blocks with {', '.join(parts)}. "
            f"Left, the tokens' size goes from {power(found.size[0])} to "
            f"{power(found.size[-1])}, and how distinct they are from "
            f"{power(found.distinct[0])} to {power(found.distinct[-1])}. "
            f"Right, the gradient at the first block's input is "
            f"{power(found.path[0])}; at the first query matrix it is "
            f"{power(found.query[0])} and at the last "
            f"{power(found.query[-1])}."
        )

    def figure(self) -> Figure:
        """The two charts, as they are now."""
        figure = Figure(figsize=(7.2, 2.8), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        found = self.trace()
        lines = {
            "size": (found.size, "-", colours.OUTPUT),
            "distinct": (found.distinct, "--", colours.V),
        }
        draw_lines(left, "Tokens", lines)
        lines = {
            "at the block's input": (found.path, "-", colours.OUTPUT),
            "at its query matrix": (found.query, "--", colours.Q),
        }
        draw_lines(right, "Gradients", lines)
        return figure


def power(x: float) -> str:
    """A number as a power of ten, or what there is less than.

    >>> power(0.002), power(1e-30)
    ('2.0e-03', 'rounding')
    """
    return f"{x:.1e}" if x > LEAST else "rounding"


def trace(
    *, depth: int, residual: bool, norm: str, feed_forward: bool, draw: int
) -> Trace:
    """Forward and back once. The arguments are the lab's settings."""
    normal = LayerNorm(D).double().requires_grad_(False)
    x = torch.tensor(TOKENS, dtype=torch.float64, requires_grad=True)
    path, queries = [x], []
    for block in range(depth):
        W_q, W_k, W_v, W_o, W_in, W_out = weights(block, draw)
        queries.append(W_q.requires_grad_())
        sublayers: list[Callable[..., Tensor]] = [
            lambda t, a=W_q, b=W_k, c=W_v, o=W_o: (
                attention(t @ a, t @ b, t @ c) @ o
            ),
        ]
        if feed_forward:
            sublayers.append(lambda t, a=W_in, b=W_out: relu(t @ a) @ b)
        for layer in sublayers:
            made = layer(normal(x) if norm == "pre" else x)
            x = x + made if residual else made
            x = normal(x) if norm == "post" else x
        path.append(x)
    up = torch.tensor(UP, dtype=torch.float64)
    gradients = torch.autograd.grad((x * up).sum(), [*path, *queries])
    norms = [gradient.norm().item() for gradient in gradients]
    return Trace(
        [x.square().mean().sqrt().item() for x in path],
        [((x - x.mean(dim=0)).norm() / x.norm()).item() for x in path],
        norms[: depth + 1],
        norms[depth + 1 :],
    )


def weights(block: int, draw: int) -> list[Tensor]:
    """The six matrices of one block: W_q, W_k, W_v, W_o, W_in, W_out.

    Their numbers have variance one, over the root of the number of rows.
    """
    start = 7919 * (block + 1) + 104729 * (draw + 5)
    numbers = iter(fixed_numbers(start, 4 * D * D + 2 * D * D_FF))
    made = []
    for rows, columns in [(D, D)] * 4 + [(D, D_FF), (D_FF, D)]:
        some = list(islice(numbers, rows * columns))
        matrix = torch.tensor(some, dtype=torch.float64) / math.sqrt(rows)
        made.append(matrix.reshape(rows, columns))
    return made


def draw_lines(ax: Axes, title: str, lines: dict[str, Any]) -> Axes:
    """One line a quantity, over the blocks, by powers of ten."""
    for name, (numbers, dash, colour) in lines.items():
        heights = [math.log10(max(x, LEAST)) for x in numbers]
        ax.plot(range(len(heights)), heights, dash, c=colour, label=name)
    ax.set(title=title, xlabel="blocks passed", ylim=(-12.5, 8))
    powers = ["≤ 10⁻¹²", "10⁻⁸", "10⁻⁴", "1", "10⁴", "10⁸"]
    ax.set_yticks([-12, -8, -4, 0, 4, 8], powers)
    ax.grid(color="0.9")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8, loc="upper right")
    return ax
