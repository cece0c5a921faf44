"""Tiles: parts of a table of scores that is never whole.

A tile is what some queries, next to each other, have to do with some keys.
It is made in memory that is at hand from the tile before.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from types import EllipsisType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from selfattn.dot_product import widen
from selfattn.pieces import LOG2_E, blocks

WhichHead = tuple[int, ...] | EllipsisType


class Inputs(NamedTuple):
    """What tiles are cut from: of all heads, or of one."""

    q: Tensor  # (..., n_q, d)
    k: Tensor  # (..., n_k, d)
    v: Tensor  # (..., n_k, d_v)
    mask: Tensor | None
    bias: Tensor | None
    causal: bool
    block_k: int

    def heads(self, block_q: int) -> Iterable[WhichHead]:
        """Which heads to work on at a time: their indices, or `...` for all.

        One by one on a CPU: the tile of one head stays in its cache, which
        makes it faster. All at once on a GPU, if they fit into one tile, and
        in a graph that is exported, whose batch may be left open.
        """
        if torch.compiler.is_exporting():
            return [...]
        *batch, n_q, _ = self.q.shape
        size = math.prod(batch) * n_q * self.k.shape[-2]
        if self.q.device.type != "cpu" or size <= block_q * self.block_k:
            return [...]
        return itertools.product(*map(range, batch))

    def at(self, which: WhichHead) -> "Inputs":
        """The inputs of that head, with its part of mask and bias: views."""
        q, k, v = self.q[which], self.k[which], self.v[which]
        batch = self.q.shape[:-2]
        mask, bias = (of_head(x, which, batch) for x in (self.mask, self.bias))
        return Inputs(q, k, v, mask, bias, self.causal, self.block_k)

    def queries(self, rows: slice) -> Tensor:
        """A block of queries, in float32 at least."""
        return widen(self.q[..., rows, :])[0]

    def blocks_of_keys(self, rows: slice) -> Iterator[slice]:
        """The blocks that any of these queries may see: if causal, no tile
        that lies wholly in the future.
        """
        n_q, n_k = self.q.shape[-2], self.k.shape[-2]
        stop = min(n_k, rows.stop + n_k - n_q) if self.causal else n_k
        return blocks(0, stop, self.block_k)

    def room(self, block_q: int) -> Tensor:
        """Memory for a tile, to be used for one after the other."""
        *batch, n_q, _ = self.q.shape
        tile = min(block_q, n_q), min(self.block_k, self.k.shape[-2])
        return widen(self.q.new_empty(*batch, *tile))[0]

    def reaches_future(self, rows: slice, keys: slice) -> bool:
        """Whether a causal tile has a key that comes after a query."""
        n_q, n_k = self.q.shape[-2], self.k.shape[-2]
        return self.causal and keys.stop > rows.start + n_k - n_q + 1

    def scores(
        self, queries: Tensor, rows: slice, keys: slice, room: Tensor
    ) -> Tensor:
        """One tile of scaled, biased and masked scores, in powers of two."""
        # Scaled within the product: alike keys must have alike scores in all
        # tiles, and those of scaled queries would be rounded one by one.
        scale = LOG2_E / math.sqrt(self.q.shape[-1])
        scores = product(queries, self.k[..., keys, :], room, scale)
        if self.bias is not None:
            bias = cut(self.bias, rows, keys)
            # The lowest number there is must not become -inf on the way, nor
            # the largest inf: log₂e times it is.
            most = torch.finfo(scores.dtype).max / (1.01 * LOG2_E)
            large = torch.finfo(bias.dtype).max > most
            added = bias.clamp(-most, most) if large else bias
            scores.add_(added, alpha=LOG2_E)
            # -inf hides even NaN; and inf, clamped, would be a mere number.
            scores.masked_fill_(bias == -math.inf, -math.inf)
            scores.masked_fill_(bias == math.inf, math.inf)
        if self.mask is not None:
            scores.masked_fill_(~cut(self.mask, rows, keys), -math.inf)
        if self.reaches_future(rows, keys):
            # The key that the first of these queries sits on.
            here = rows.start + self.k.shape[-2] - self.q.shape[-2]
            hide_future(scores, here - keys.start)
        return scores


class Gradients(NamedTuple):
    """What is passed back, added up tile by tile, in float32 at least."""

    q: Tensor
    k: Tensor
    v: Tensor
    bias: Tensor | None

    def at(self, which: WhichHead) -> "Gradients":
        """Those of one head: views."""
        bias = of_head(self.bias, which, self.q.shape[:-2])
        return Gradients(self.q[which], self.k[which], self.v[which], bias)


def of_head(table: Any, which: WhichHead, batch: torch.Size) -> Any:
    """One head's part of a mask, a bias or its gradient: a view."""
    if table is None or which is ...:
        return table
    return torch.atleast_2d(table).expand(*batch, -1, -1)[which]


def hide_future(scores: Tensor, here: int) -> None:
    """Hide the keys after `here` from the first query, and so on.

    From a few queries at a time: what is added then stays in the cache.
    """
    for some in blocks(0, scores.shape[-2], 64):
        seen = here + some.start + 1  # keys, by the first of them
        rest = scores[..., some, max(seen, 0) :]
        last = min(seen, 0) - 1  # of the rest, what it sees
        hidden = torch.full_like(rest, -math.inf).triu_(last + 1)
        rest.tril_(last).add_(hidden)  # which hides even NaN


def product(a: Tensor, b: Tensor, room: Tensor, scale: float = 1) -> Tensor:
    """Write a bᵀ to memory at hand; new memory must first be mapped."""
    b, out = b.to(a.dtype).mT, room[..., : a.shape[-2], : b.shape[-2]]
    if a.ndim == 2:
        return torch.addmm(out, a, b, beta=0, alpha=scale, out=out)
    torch.matmul(a, b, out=out)
    return out if scale == 1 else out.mul_(scale)


def cut(table: Tensor, rows: slice, keys: slice) -> Tensor:
    """A tile of a mask or bias; an axis of one stays, and broadcasts."""
    table = torch.atleast_2d(table)
    rows = rows if table.shape[-2] > 1 else slice(None)
    keys = keys if table.shape[-1] > 1 else slice(None)
    return table[..., rows, keys]
