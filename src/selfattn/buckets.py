"""Buckets: which queries meet which keys, when both have been given numbers.

Tokens of one number share a bucket. Buckets differ in size; those of alike
size are made up into one group, which is one product.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn.masks import indices

ROWS = 256  # queries of one bucket at a time, at most
SCORES = 2**17  # scores at a time, unless one bucket has more


def unless_alone(
    of_q: Tensor, of_k: Tensor, n_buckets: int, causal: bool
) -> Tensor:
    """The key that is each query's own, (batch, n_q); -1 if it sees no other.

    That is asked of buckets, whose first and last keys tell it, and not of
    scores: of those no number is low enough for all that they may be.
    """
    i, j = indices(of_q.shape[-1], of_k.shape[-1], device=of_q.device)
    own, at = i.mT, j.expand_as(of_k)
    empty = of_k.new_empty((*of_k.shape[:-1], n_buckets), dtype=at.dtype)

    def outermost(which: str, none: int) -> Tensor:
        of = empty.fill_(none).scatter_reduce(-1, of_k.long(), at, which)
        return of.gather(-1, of_q.long())

    sees = outermost("amin", of_k.shape[-1] + of_q.shape[-1]) < own
    if not causal:
        sees |= outermost("amax", -of_q.shape[-1] - 1) > own
    return own.where(sees.any(dim=0), -1)


def groups(
    of_q: Tensor,
    of_k: Tensor,
    n_buckets: int,
    causal: bool,
    hides: Tensor | None,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """All buckets of all rounds, in groups of alike size.

    One key may be hidden from each query, `hides`, (batch, n_q). Yields the
    queries, (buckets, rows), the keys, (buckets, columns), and what to add to
    their scores, (buckets, rows, columns). Tokens are numbered through the
    batch. Small buckets are padded with the number after the last, which no
    query sees; no other token is in a group twice.
    """
    n_q, n_k = of_q.shape[-1], of_k.shape[-1]
    i, j = (x.flatten() for x in indices(n_q, n_k, device=of_q.device))
    at_k = padded(j, n_k, of_k[0])
    own = None if hides is None else padded(hides, -1, of_q[0])
    # The last key that a query sees; for what only pads, there is none.
    last = padded(i if causal else i * 0 + n_k - 1, -1, of_q[0])
    codes = [[padded(x, 0, x) for x in of] for of in (of_q, of_k)]
    for found, of in enumerate(zip(of_q, of_k, strict=True)):
        orders, sizes = zip(*(in_order(x, n_buckets) for x in of), strict=True)
        for group in alike(*sizes):
            spans = torch.tensor(group, device=of_q.device).unbind(dim=-1)
            rows = tokens(orders[0], *spans[2:4])
            keys = tokens(orders[1], *spans[4:])
            columns = at_k.take(keys)[:, None, :]
            hidden = columns > last.take(rows)[..., None]
            for x, y in zip(*(of[:found] for of in codes), strict=True):
                hidden |= y.take(keys)[:, None, :] == x.take(rows)[..., None]
            if own is not None:
                hidden |= columns == own.take(rows)[..., None]
            bias = hidden.new_zeros(hidden.shape, dtype=torch.float32)
            yield rows, keys, bias.masked_fill_(hidden, -math.inf)


def padded(x: Tensor, value: int, like: Tensor) -> Tensor:
    """The numbers of all tokens of the batch, and one more."""
    return F.pad(x.expand_as(like).reshape(-1).int(), (0, 1), value=value)


def in_order(buckets: Tensor, n_buckets: int) -> tuple[Tensor, list[int]]:
    """Tokens by batch, bucket and position; and how many are in each."""
    batch = torch.arange(len(buckets), device=buckets.device)[:, None]
    keys = (batch * n_buckets + buckets).flatten()
    sizes = keys.bincount(minlength=len(buckets) * n_buckets)
    return keys.argsort(stable=True), sizes.tolist()


def alike(sizes_q: list[int], sizes_k: list[int]) -> Iterator[list]:
    """Buckets of alike size, as many at a time as `SCORES` allows.

    Each is (cut, size, first query, queries, first key, keys). The queries
    of a large bucket are cut; no group holds two cuts of one bucket.
    """
    found, q, k = [], 0, 0
    for n_q, n_k in zip(sizes_q, sizes_k, strict=True):
        for cut in range(0, n_q if n_k else 0, ROWS):
            n_rows = min(ROWS, n_q - cut)
            found.append((cut, max(n_rows, n_k), q + cut, n_rows, k, n_k))
        q, k = q + n_q, k + n_k
    found.sort(reverse=True)
    while found:
        most = max(1, SCORES // found[0][1] ** 2)
        least = (found[0][0], 0.75 * found[0][1])  # or padding is most of it
        group = [one for one in found[:most] if one >= least]
        yield group
        found = found[len(group) :]


def tokens(order: Tensor, first: Tensor, lengths: Tensor) -> Tensor:
    """So many from there on in this order, padded by the number after all."""
    steps = torch.arange(int(lengths.max()), device=order.device)
    at = (first[:, None] + steps).clamp(max=len(order) - 1)
    return order[at].masked_fill(steps >= lengths[:, None], len(order))
