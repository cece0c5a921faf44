"""The Sparse Transformer's patterns: near keys, and a few from everywhere.

Computes:  exactly `attention` with `strided_mask` or `fixed_mask`
Time:      O(n √n d), stride √n  Memory: O(n d), and one piece of scores
Supports:  causal
Reference: Child et al. (2019), sections 4.2 and 4.3
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from selfattn.checks import check_call, check_once, check_shapes, check_whole
from selfattn.dot_product import (
    Bias,
    Keys,
    Mask,
    Output,
    Queries,
    Values,
    refuse,
    widen,
)
from selfattn.hidden import unfelt
from selfattn.masks import indices
from selfattn.pieces import (
    LOG2_E,
    blocks,
    next_weights,
    on_any_axes,
    without_autocast,
)
from selfattn.signatures import checked
from selfattn.transforms import settled

BLOCK = 64  # queries at a time, at least: smaller products are slower


@checked
def strided_mask(
    n_q: int,
    n_k: int,
    stride: int,
    *,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "n_q n_k"]:
    """The keys less than a stride away, and every stride-th from there on.

    Args:
        n_q: number of queries.
        n_k: number of keys; the last query sits on the last key.
        stride: how far from one key to the next; at least 1.
        device: where to make the mask.

    Returns:
        A mask, (n_q, n_k). Any token reaches any other in two steps.

    Raises:
        ValueError: if the stride is smaller than 1.

    Reference: Child et al. (2019), section 4.3, figure 3b.

    >>> from selfattn.masks import causal_mask, draw
    >>> print(draw(strided_mask(7, 7, stride=3) & causal_mask(7, 7)))
    ■ · · · · · ·
    ■ ■ · · · · ·
    ■ ■ ■ · · · ·
    ■ ■ ■ ■ · · ·
    · ■ ■ ■ ■ · ·
    · · ■ ■ ■ ■ ·
    ■ · · ■ ■ ■ ■
    """
    stride, _ = enough(check_stride(stride), 1, n_q, n_k)
    i, j = indices(n_q, n_k, device=device)
    return ((i - j).abs() < stride) | ((i - j) % stride == 0)


@checked
def fixed_mask(
    n_q: int,
    n_k: int,
    stride: int,
    *,
    n_summaries: int = 1,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "n_q n_k"]:
    """The keys of the query's own block, and the last of every other block.

    Args:
        n_q: number of queries.
        n_k: number of keys; the last query sits on the last key.
        stride: how many keys a block has, counted from the first key.
        n_summaries: how many keys at a block's end every query sees.
        device: where to make the mask.

    Returns:
        A mask, (n_q, n_k).

    Raises:
        ValueError: if the stride is smaller than 1, or a block has fewer
            keys than summaries.

    Reference: Child et al. (2019), section 4.3, figure 3c.

    >>> from selfattn.masks import causal_mask, draw
    >>> print(draw(fixed_mask(7, 7, stride=3) & causal_mask(7, 7)))
    ■ · · · · · ·
    ■ ■ · · · · ·
    ■ ■ ■ · · · ·
    · · ■ ■ · · ·
    · · ■ ■ ■ · ·
    · · ■ ■ ■ ■ ·
    · · ■ · · ■ ■
    """
    check_stride(stride, n_summaries)
    stride, n_summaries = enough(stride, n_summaries, n_q, n_k)
    i, j = indices(n_q, n_k, device=device)
    return (i // stride == j // stride) | (j % stride >= stride - n_summaries)


def strided_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    stride: int | None = None,
) -> Output:
    """Attend to the keys that `strided_mask` allows, and to no others.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
        mask: refused: use `flash_attention` with ``strided_mask(...) & mask``.
        bias: refused, likewise.
        causal: hide from each query the keys after it; the last query sits
            on the last key.
        stride: how far from one key to the next; √n_k, rounded down, if None.
            Then it grows with a text, whose first tokens see other keys than
            they did: bind one to write with a cache, which asks for it.

    Returns:
        The output, (..., n_q, d_v). A query that may see no key gets zeros.
        It can be differentiated once, not twice.

    Raises:
        ValueError: if shapes do not fit together, the stride is smaller than
            1, or a mask or bias is given.

    Reference: Child et al. (2019), section 4.3.

    >>> from selfattn.dot_product import attention
    >>> q, k, v = torch.randn(3, 100, 8)
    >>> few = strided_attention(q, k, v, stride=7)
    >>> same = attention(q, k, v, mask=strided_mask(100, 100, 7))
    >>> torch.allclose(few, same, atol=1e-6)
    True
    """
    check_shapes(q, k, v)
    why = "it makes no table of scores to put it on"
    refuse("strided_attention", why, mask, bias)
    stride = check_stride(default_stride(stride, k))
    stride, _ = enough(stride, 1, q.shape[-2], k.shape[-2])
    cut = partial(strided, stride=stride, causal=causal)
    return in_pieces("strided_attention", q, k, v, causal, cut)


def fixed_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    stride: int | None = None,
    n_summaries: int = 1,
) -> Output:
    """Attend to the keys that `fixed_mask` allows, and to no others.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
        mask: refused: use `flash_attention` with ``fixed_mask(...) & mask``.
        bias: refused, likewise.
        causal: hide from each query the keys after it; the last query sits
            on the last key.
        stride: how many keys a block has; √n_k, rounded down, if None. Then
            it grows with a text, whose first tokens see other keys than they
            did: bind one to write with a cache, which asks for it.
        n_summaries: how many keys at a block's end every query sees. Each is
            a round of its own over all queries: few are meant.

    Returns:
        The output, (..., n_q, d_v). A query that may see no key gets zeros.
        It can be differentiated once, not twice.

    Raises:
        ValueError: if shapes do not fit together, the stride is smaller than
            1 or than n_summaries, or a mask or bias is given.

    Reference: Child et al. (2019), section 4.3.

    >>> from selfattn.dot_product import attention
    >>> q, k, v = torch.randn(3, 100, 8)
    >>> few = fixed_attention(q, k, v, stride=7)
    >>> same = attention(q, k, v, mask=fixed_mask(100, 100, 7))
    >>> torch.allclose(few, same, atol=1e-6)
    True
    """
    check_shapes(q, k, v)
    why = "it makes no table of scores to put it on"
    refuse("fixed_attention", why, mask, bias)
    stride = check_stride(default_stride(stride, k), n_summaries)
    stride, n_last = enough(stride, n_summaries, q.shape[-2], k.shape[-2])
    cut = partial(fixed, stride=stride, n_last=n_last, causal=causal)
    return in_pieces("fixed_attention", q, k, v, causal, cut)


# What is left to the length of the call: a layer that keeps keys asks for it.
vars(strided_attention)["by_length"] = "stride"
vars(fixed_attention)["by_length"] = "stride"


def default_stride(stride: int | None, k: Tensor) -> int:
    """The stride, or the root of the length: both halves then cost alike."""
    return max(1, math.isqrt(k.shape[-2])) if stride is None else stride


def check_stride(stride: int, n_summaries: int = 1) -> int:
    """The stride, if there can be one like this."""
    check_whole(stride=stride, n_summaries=n_summaries)
    if stride < 1:
        raise ValueError(f"a stride must be at least 1, but stride={stride}")
    if not 1 <= n_summaries <= stride:
        raise ValueError(
            "a block must have at least 1 summary and no more than keys, but "
            f"n_summaries={n_summaries} and stride={stride}"
        )
    return stride


def enough(
    stride: int, n_summaries: int, n_q: int, n_k: int
) -> tuple[int, int]:
    """A stride that reaches as far, and is no longer than need be.

    What it is longer than all tokens lies behind the last of them, and so do
    as many of the summaries.
    """
    stride, n_summaries, n_q, n_k = settled(stride, n_summaries, n_q, n_k)
    spare = max(0, stride - max(n_q, n_k) - 1)
    return stride - spare, n_summaries - spare


class Piece(NamedTuple):
    """Some queries and some keys; a query meets a key in one piece at most."""

    rows: slice
    keys: slice
    hidden: Tensor  # (rows, keys): True where a query may not look


Cut = Callable[[Tensor, Tensor], Iterator[Piece]]


def strided(
    i: Tensor, j: Tensor, stride: int, causal: bool
) -> Iterator[Piece]:
    """The band around the diagonal; then what lies whole strides away.

    Tokens that are whole strides apart are one class. Each class is a short
    sequence, and attention in it is a product of two slices.
    """
    n_q, n_k = len(i), j.shape[-1]
    first = n_k - n_q  # where the first query sits
    for rows in blocks(0, n_q, max(stride, BLOCK)):
        stop = rows.stop + first + (0 if causal else stride - 1)
        keys = within(rows.start + first - stride + 1, stop, n_k)
        hidden = (i[rows] - j[:, keys]).abs() >= stride
        yield Piece(rows, keys, unless_past(hidden, i, j, rows, keys, causal))
    for remainder in range(min(stride, n_k)):
        start = (remainder - first) % stride
        for rows in blocks(start, n_q, stride * 2 * BLOCK, stride):
            stop = rows.stop + first if causal else n_k
            keys = slice(remainder, min(max(0, stop), n_k), stride)
            hidden = i[rows] == j[:, keys]  # it is in the band
            hidden = unless_past(hidden, i, j, rows, keys, causal)
            yield Piece(rows, keys, hidden)


def fixed(
    i: Tensor, j: Tensor, stride: int, n_last: int, causal: bool
) -> Iterator[Piece]:
    """Each block by itself; then everyone with the last of each block."""
    n_q, n_k = len(i), j.shape[-1]
    first = n_k - n_q
    for block in blocks(first // stride * stride, n_k, stride):
        begin = max(0, block.start - first)
        end = min(n_q, block.start + stride - first)
        for rows in blocks(begin, end, 2 * BLOCK):
            stop = rows.stop + first if causal else block.start + stride
            keys = within(block.start, stop, n_k)
            hidden = torch.zeros_like(i[rows] < j[:, keys])
            hidden = unless_past(hidden, i, j, rows, keys, causal)
            yield Piece(rows, keys, hidden)
    for rows in blocks(0, n_q, 8 * BLOCK):
        stop = min(rows.stop + first, n_k) if causal else n_k
        for last in range(stride - n_last, stride):
            keys = slice(last, max(0, stop), stride)
            hidden = i[rows] // stride == j[:, keys] // stride
            hidden = unless_past(hidden, i, j, rows, keys, causal)
            yield Piece(rows, keys, hidden)


def unless_past(
    hidden: Tensor, i: Tensor, j: Tensor, rows: slice, keys: slice, causal
) -> Tensor:
    """Hide the future, too, if causal."""
    return hidden | (j[:, keys] > i[rows]) if causal else hidden


def within(start: int, stop: int, n: int) -> slice:
    """From start to stop, but nothing before 0 nor after n."""
    return slice(max(0, start), max(0, min(stop, n)))


def in_pieces(name: str, q, k, v, causal: bool, cut: Cut) -> Tensor:
    """Attend piece by piece, on any number of axes before the tokens."""
    check_call(name, q, k, v, causal)

    attend = on_any_axes(lambda *qkv: Pieces.apply(*qkv, cut, name, False))
    exactly = on_any_axes(lambda *qkv: Pieces.apply(*qkv, cut, name, True))
    return unfelt(attend, q, k, v, exactly=exactly)


class Pieces(torch.autograd.Function):
    """Both passes by hand, on (batch, n, d): one softmax over many pieces.

    A new piece rescales what the earlier ones left, as FlashAttention does.
    On the way back each piece makes its weights anew. Exponentials are
    powers of two: on a CPU, ``exp`` is slow where it rounds to zero.
    Autocast is off in both: it would round what many pieces add up to.
    """

    @staticmethod
    @without_autocast
    def forward(ctx: Any, q, k, v, cut, name, hiding):
        """Add each piece to the output of its queries."""
        # The output is kept in float32 at least: what two terms of the way
        # back leave of each other may be less than half precision rounds.
        n_q, n_k = q.shape[-2], k.shape[-2]
        [output] = widen(q.new_zeros(*q.shape[:-1], v.shape[-1]))
        # The lowest finite number and not -inf, because -inf - -inf is NaN.
        lowest = torch.finfo(output.dtype).min
        top = output.new_full((*q.shape[:-1], 1), lowest)
        total = torch.zeros_like(top)
        for rows, keys, hidden in cut(*indices(n_q, n_k, device=q.device)):
            scores, _, _, values = scored(
                *(q, k, v, rows, keys, hidden), hiding
            )
            if not scores.numel():
                continue
            # A view: what is given to `next_weights` is written over.
            weights, shrink, new_top, total[:, rows] = next_weights(
                scores, top[:, rows], total[:, rows]
            )
            summed = output[:, rows].mul_(shrink)
            output[:, rows] = torch.baddbmm(summed, weights, values)
            top[:, rows] = new_top  # not before: `shrink` lies in its memory
        total.masked_fill_(total == 0, 1.0)
        output.div_(total)
        ctx.save_for_backward(q, k, v, output, top, total)
        ctx.cut, ctx.name = cut, name
        return output.to(q.dtype)

    @staticmethod
    @without_autocast
    def backward(ctx: Any, grad_output):
        """Visit the same pieces, and add up what they pass back."""
        check_once(ctx.name, grad_output)
        q, k, v, output, top, total = ctx.saved_tensors
        grad_q, grad_k, grad_v = widen(*map(torch.zeros_like, (q, k, v)))
        where = indices(q.shape[-2], k.shape[-2], device=q.device)
        for rows, keys, hidden in ctx.cut(*where):
            scores, queries, near, values = scored(q, k, v, rows, keys, hidden)
            weights = scores.sub_(top[:, rows]).exp2_()
            # Weights are these over the total, which is put on what they are
            # multiplied with.
            grad = grad_output[:, rows] / total[:, rows]
            grad_v[:, keys] += weights.mT @ grad
            dots = (grad * output[:, rows]).sum(dim=-1, keepdim=True)
            grad_scores = (grad @ values.mT).sub_(dots).mul_(weights)
            grad_q[:, rows] += grad_scores @ near
            grad_k[:, keys] += grad_scores.mT @ queries
        for grad in (grad_q, grad_k):
            grad /= math.sqrt(q.shape[-1])
        grads = (grad_q.to(q.dtype), grad_k.to(k.dtype), grad_v.to(v.dtype))
        return *grads, None, None, None


def scored(
    q, k, v, rows: slice, keys: slice, hidden: Tensor, hiding: bool = False
):
    """A piece's scores, in powers of two, and the tensors it was made of.

    Hiding, minus infinity takes the place of scores; else it is added, which
    is faster, and makes NaN of those that are infinite.
    """
    queries, near, values = widen(q[:, rows], k[:, keys], v[:, keys])
    # Scaled after the product: alike keys must have alike scores in all
    # pieces, and those of scaled queries would be rounded one by one.
    scale = LOG2_E / math.sqrt(q.shape[-1])
    unseen = queries.new_zeros(hidden.shape).masked_fill_(hidden, -math.inf)
    scores = queries @ near.mT
    torch.add(unseen, scores, alpha=scale, out=scores)
    if hiding:
        scores.masked_fill_(hidden, -math.inf)
    return scores, queries, near, values
