"""Ulysses: devices with some of the tokens swap them for some of the heads."""

import math
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from selfattn.checks import (
    batch_shape,
    check_call,
    check_divides,
    check_one_at_a_time,
    check_types,
)
from selfattn.devices.heads import of_heads
from selfattn.devices.ranks import (
    Group,
    answers,
    check_tables_fit,
    place,
    shapes_of_all,
    uncompiled,
)
from selfattn.dot_product import (
    Attend,
    Bias,
    Keys,
    Mask,
    Output,
    Queries,
    Values,
    fused_attention,
    refuse,
)
from selfattn.entering import attended, check_unbound


@uncompiled
def ulysses_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    group: Group = None,
    attend: Attend = fused_attention,
) -> Output:
    """Attention over the tokens of all ranks, each of which holds a part.

    In one all-to-all each for q, k and v, ranks swap their part of the
    tokens, with all heads, for a part of the heads, with all tokens. Then
    they attend, each on its own and by any mechanism, and swap back. A layer
    that rotates has to know where this rank begins; see `ring_attention`,
    also for `torch.compile`.

    Args:
        q: this rank's queries, (..., n_heads, n_q, d).
        k: its keys, (..., n_heads, n_k, d). The tokens of one rank follow
            those of the rank before; they may be more or fewer.
        v: its values, (..., n_heads, n_k, d_v).
        mask: True where all queries may attend, to keys of all ranks:
            broadcasts to (..., n_heads, 1, n_k of all ranks together), and
            is the same on every rank.
        bias: added to the scaled scores, likewise. Its gradient is what this
            rank's heads pass back to it.
        causal: hide from each query the keys after it; the last query sits
            on the last key.
        group: the ranks; None for all there are.
        attend: how the heads attend: any mechanism of this book. It may bind
            options of its own, but no mask, bias or ``causal``.

    Returns:
        The output of this rank's queries, (..., n_heads, n_q, d_v).

    Raises:
        ValueError: if shapes or types do not fit together, on a rank or
            between ranks, if the heads do not come out even, if a mask or
            bias has a row for each query, if ``attend`` binds what it is
            handed here, or if there is no process group.
        RuntimeError: if another rank does not answer.

    Reference: Jacobs et al. (2023), section 3.
    """
    check_call("ulysses_attention", q, k, v, causal)
    check_unbound(attend, "mask", "bias", "causal")
    check_types(q, k, v, mask, bias)
    rank, ranks = place(group)
    if ranks > 1:
        refuse_rows(mask, bias)
    shapes = shapes_of_all("ulysses_attention", group, q, k, v, causal=causal)
    lengths = [[of_all[i][-2] for of_all in shapes] for i in range(3)]
    check_tables_fit(mask, bias, q, k, sum(lengths[1]))
    batch = batch_shape(q, k, v)
    n_heads = batch[-1] if batch else 1
    check_divides("the number of ranks", ranks, "the number of heads", n_heads)
    own = slice(*(n_heads * i // ranks for i in (rank, rank + 1)))
    tokens = (x.expand(*(batch or (1,)), -1, -1) for x in (q, k, v))
    heads = [*map(ToHeads.apply, tokens, lengths, [group] * 3)]
    tables = {"mask": of_heads(mask, own), "bias": of_heads(bias, own)}
    output = attended(attend, *heads, **tables, causal=causal)
    output = ToTokens.apply(output, lengths[0], group)
    return output if batch else output[0]


def refuse_rows(mask: Mask, bias: Bias) -> None:
    """Raise if a table has a row for each query: it is on their rank."""
    tables = (
        x if x is not None and x.ndim > 1 and x.shape[-2] > 1 else None
        for x in (mask, bias)
    )
    why = "its heads need the rows of all queries; ring_attention needs none"
    refuse("ulysses_attention", why, *tables)


class ToHeads(torch.autograd.Function):
    """From (..., n_heads, n, d) to (..., n_heads / ranks, n of all, d)."""

    @staticmethod
    def forward(ctx: Any, x, lengths, group):
        """Send to each rank its heads of our tokens."""
        ctx.lengths, ctx.group = lengths, group
        ranks = len(lengths)
        *batch, n_heads, _, d = x.shape
        shapes = [(*batch, n_heads // ranks, n, d) for n in lengths]
        return torch.cat(swap(x.chunk(ranks, dim=-3), shapes, group), dim=-2)

    @staticmethod
    def backward(ctx: Any, grad):
        """The other way."""
        return ToTokens.apply(grad, ctx.lengths, ctx.group), None, None


class ToTokens(torch.autograd.Function):
    """From (..., n_heads / ranks, n of all, d) to (..., n_heads, n, d)."""

    @staticmethod
    def forward(ctx: Any, x, lengths, group):
        """Send to each rank its tokens of our heads."""
        ctx.lengths, ctx.group = lengths, group
        rank, ranks = place(group)
        *batch, _, d = x.shape
        shapes = [(*batch, lengths[rank], d)] * ranks
        return torch.cat(swap(x.split(lengths, dim=-2), shapes, group), dim=-3)

    @staticmethod
    def backward(ctx: Any, grad):
        """The other way."""
        return ToHeads.apply(grad, ctx.lengths, ctx.group), None, None


def swap(
    pieces: tuple[Tensor, ...], shapes: list[tuple[int, ...]], group: Group
) -> list[Tensor]:
    """Give each rank its piece, and get from each one of such a shape."""
    if len(pieces) == 1:
        return list(pieces)
    name = "ulysses_attention"
    check_one_at_a_time(name, "ranks swap no more than that", *pieces)
    sent = torch.cat([piece.reshape(-1) for piece in pieces])
    sizes = [math.prod(shape) for shape in shapes]
    got = sent.new_empty(sum(sizes))
    given = [piece.numel() for piece in pieces]
    with answers(name, group):
        dist.all_to_all_single(got, sent, sizes, given, group=group)
    parts = zip(got.split(sizes), shapes, strict=True)
    return [part.view(shape) for part, shape in parts]
