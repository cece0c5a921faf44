"""The lab of the chapter on masks.

The reader chooses a mask or draws one, and sees it in the four conventions
that are in use, with the weights that it gives, and the calls that use it.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.dot_product import attention_weights
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Cells, Choice, Flag, Whole
from selfattn.masks import (
    block_mask,
    causal_mask,
    document_mask,
    padding_mask,
    prefix_mask,
    window_mask,
)
from selfattn.plots.colours import K, Q
from selfattn.plots.masks import mask_grid

LONGEST = 128

# The first three rows are the running numbers of the book.
QUERIES = [[1.0, 0.0], [0.0, 2.0], [2.0, 1.0]]
KEYS = [[1.0, 1.0], [2.0, 0.0], [0.0, 1.0]]

SIZED = {"prefix": prefix_mask, "window": window_mask, "block": block_mask}


class MasksLab(Lab):
    """A mask, chosen or drawn, and all that follows from it.

    Attributes:
        kind: "none", "causal", "prefix", "window", "block" or "documents".
        n: how many keys there are.
        n_q: how many queries there are.
        size: the length of the prefix, the window, the block, or the first
            document; each document is one longer than that before it.
        causal: whether the future is hidden, too.
        padded: how many keys are padding.
        left: whether the padding is on the left.
        alignment: "last", if the last query sits on the last key, or "first".
        flipped: the cells that are drawn, that is, turned round.
        i: the row that is pointed at.
        j: the column that is pointed at.
    """

    kind = Choice(
        "causal",
        ["none", "causal", "prefix", "window", "block", "documents"],
    )
    n = Whole(8, 2, LONGEST)
    n_q = Whole(8, 1, LONGEST)
    size = Whole(3, 1, LONGEST, of="n")
    causal = Flag(False)
    padded = Whole(0, 0, LONGEST, of="n")
    left = Flag(False)
    alignment = Choice("last", ["last", "first"])
    flipped = Cells(LONGEST, most=256)
    i = Whole(0, 0, LONGEST - 1, of="n_q", plus=-1)
    j = Whole(0, 0, LONGEST - 1, of="n", plus=-1)

    def keep(self) -> Bool[Tensor, "n_q n_k"]:
        """The mask, True where a query may look: by the package."""
        values = self.values()
        return keep(**{x: values[x] for x in values.keys() - {"i", "j"}})

    def weights(self) -> Float[Tensor, "n_q n_k"]:
        """The weights that the mask gives, in float64."""
        q, k = vectors(self.n_q, self.n)
        return attention_weights(q, k, mask=self.keep())

    def describe(self) -> str:
        """The picture in words."""
        mask = self.keep()
        empty = (~mask.any(dim=-1)).sum().item()
        return (
            f"Two tables of {self.n_q} queries by {self.n} keys. Left, the "
            f"mask: {mask.sum().item()} of {mask.numel()} pairs are allowed, "
            f"and {empty} queries may see nothing. Right, the weights."
        )

    def figure(self) -> Figure:
        """The mask and its weights, as they are now."""
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        mask_grid(left, self.keep(), title="Mask: dark may look")
        draw_weights(right, self.weights())
        return figure


def keep(
    *,
    kind: str,
    n: int,
    n_q: int,
    size: int,
    causal: bool,
    padded: int,
    left: bool,
    alignment: str,
    flipped: Any,
) -> Bool[Tensor, "n_q n_k"]:
    """The mask of these settings, those of `MasksLab`."""
    start = 0 if alignment == "first" else n - n_q
    aligned = n_q, n, start
    if kind == "documents":
        mask = documents(n_q, n, size, start)
    elif kind == "none":
        mask = torch.ones(n_q, n, dtype=torch.bool)
    elif kind == "causal":
        mask = table(causal_mask, *aligned)
    else:
        mask = table(SIZED[kind], *aligned, size)
    if causal:
        mask = mask & table(causal_mask, *aligned)
    real = padding_mask(torch.tensor([n - padded]), n)[0, 0]
    mask = mask & (real.flip(-1) if left else real)
    return mask ^ drawn(flipped)[:n_q, :n]


def table(
    mask: Any, n_q: int, n: int, start: int, *how: int
) -> Bool[Tensor, "{n_q} {n}"]:
    """The mask of queries from start on, and of keys from 0 on."""
    end = max(n, start + n_q)
    # Made for queries up to the end, since the last sits on the last.
    return mask(end - start, end, *how)[:n_q, :n]


def drawn(flipped: Any) -> Bool[Tensor, "longest longest"]:
    """A table that is True at these cells."""
    cells = torch.zeros(LONGEST, LONGEST, dtype=torch.bool)
    for i, j in flipped:
        cells[i, j] = True
    return cells


def documents(
    n_q: int, n: int, size: int, start: int
) -> Bool[Tensor, "{n_q} {n}"]:
    """`document_mask`; a query outside the text belongs to no document."""
    first = min(start, 0)
    names = torch.arange(1000, 1000 + max(n, start + n_q) - first)
    text = torch.repeat_interleave(torch.tensor(lengths(n, size)))
    names[-first : n - first] = text
    square = document_mask(names[None])[0, 0]
    return square[start - first :, -first:][:n_q, :n]


def lengths(n: int, size: int) -> list[int]:
    """Documents of ``size`` tokens, one more, and so on, n in all."""
    found: list[int] = []
    while n > 0:
        found.append(min(size + len(found), n))
        n -= found[-1]
    return found


def vectors(
    n_q: int, n: int
) -> tuple[Float[Tensor, "{n_q} 2"], Float[Tensor, "{n} 2"]]:
    """Queries of the newest tokens, and the keys of all, in float64.

    Behind the three of the running example they are halves from -1.5 to 1.5,
    by a rule that the page follows as well.
    """
    first = max(0, n - n_q)
    q = [query(p) for p in range(first, first + n_q)]
    k = [key(p) for p in range(n)]
    double = torch.float64
    return torch.tensor(q, dtype=double), torch.tensor(k, dtype=double)


def query(p: int) -> list[float]:
    """The query of the token at position p."""
    if p < len(QUERIES):
        return QUERIES[p]
    return [((5 * p + 2) % 7 - 3) / 2, ((3 * p + 4) % 7 - 3) / 2]


def key(p: int) -> list[float]:
    """The key of the token at position p."""
    if p < len(KEYS):
        return KEYS[p]
    return [((4 * p + 1) % 7 - 3) / 2, ((2 * p + 5) % 7 - 3) / 2]


def draw_weights(ax: Axes, weights: Float[Tensor, "n_q n_k"]) -> Axes:
    """The weights as shades of grey, the same for all settings."""
    ax.imshow(weights.tolist(), cmap="Greys", vmin=0, vmax=1)
    ax.set_title("Weights: darker is more", fontsize=10)
    ax.set_xlabel("key", color=K)
    ax.set_ylabel("query", color=Q)
    return ax
