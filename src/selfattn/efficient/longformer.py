"""Longformer: a window for all, and a few tokens that see and are seen by all.

Computes:  exactly `attention` with `longformer_mask`
Time:      O(n (w + g) d)       Memory: O(n d), and one band of scores
Supports:  causal
Reference: Beltagy et al. (2020), section 3.1
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from selfattn.checks import (
    check_call,
    check_once,
    check_whole,
    check_window,
)
from selfattn.dot_product import (
    Bias,
    Keys,
    Mask,
    Output,
    Queries,
    Values,
    by_definition,
    refuse,
    widen,
)
from selfattn.hidden import unfelt
from selfattn.kernels import Kernel, keeping_nan
from selfattn.masks import indices, window_mask
from selfattn.pieces import (
    averaged,
    blocks,
    on_any_axes,
    softmax_again,
    without_autocast,
)
from selfattn.signatures import checked
from selfattn.transforms import settled

BLOCK = 64  # queries at a time; fewer than a window, or most scores are waste


@checked
def longformer_mask(
    n_q: int,
    n_k: int,
    window: int,
    *,
    global_at: Sequence[int] = (0,),
    device: torch.device | str | None = None,
) -> Bool[Tensor, "n_q n_k"]:
    """`window_mask`, and some positions that see all and are seen by all.

    Args:
        n_q: number of queries.
        n_k: number of keys; the last query sits on the last key.
        window: how many keys to each side, the query's own counted; at
            least 1.
        global_at: positions of the global tokens, counted from the first
            key.
        device: where to make the mask.

    Returns:
        A mask, (n_q, n_k).

    Raises:
        ValueError: if the window is smaller than 1, or a global token is at
            no key, or named twice.

    Reference: Beltagy et al. (2020), section 3.1, figure 2d.

    >>> from selfattn.masks import draw
    >>> print(draw(longformer_mask(6, 6, window=2, global_at=[1])))
    ■ ■ · · · ·
    ■ ■ ■ ■ ■ ■
    · ■ ■ ■ · ·
    · ■ ■ ■ ■ ·
    · ■ · ■ ■ ■
    · ■ · · ■ ■
    """
    check_global(global_at, n_k)
    near = window_mask(n_q, n_k, window, device=device)
    i, j = indices(n_q, n_k, device=device)
    at = torch.tensor(global_at, dtype=torch.long, device=device)
    return near | torch.isin(i, at) | torch.isin(j, at)


@checked
def longformer_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    window: int,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    global_at: Sequence[int] = (0,),
) -> Output:
    """Attend to the near keys and the global ones; global queries, to all.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
        window: how many keys to each side, the query's own counted; at
            least 1. The last query sits on the last key.
        mask: refused: use `flash_attention` with
            ``longformer_mask(...) & mask``.
        bias: refused, likewise.
        causal: hide from each query the keys after it, from global ones too.
        global_at: positions of the global tokens, counted from the first
            key; by default the first, where classifiers have their own.

    Returns:
        The output, (..., n_q, d_v). A query that may see no key gets zeros.
        It can be differentiated once, not twice.

    Raises:
        ValueError: if shapes do not fit together, the window is smaller than
            1, a global token is at no key or named twice, or a mask or bias
            is given.

    Reference: Beltagy et al. (2020), section 3.1. There, the global tokens
    have projections of their own; here they share those of the layer.

    >>> from selfattn.dot_product import attention
    >>> q, k, v = torch.randn(3, 100, 8)
    >>> few = longformer_attention(q, k, v, window=5, global_at=(0, 40))
    >>> published = longformer_mask(100, 100, 5, global_at=(0, 40))
    >>> same = attention(q, k, v, mask=published)
    >>> torch.allclose(few, same, atol=1e-6)
    True
    """
    check_call("longformer_attention", q, k, v, causal)
    why = "it makes no table of scores to put it on"
    refuse("longformer_attention", why, mask, bias)
    check_window(window)
    check_global(global_at, k.shape[-2])
    [window] = settled(window)
    at = sorted(settled(*global_at))[
        : k.shape[-2]
    ]  # without keys, no first one either

    def exactly(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return band_by_band(q, k, v, at, window, causal, by_definition)

    how = at, window, causal
    attend = on_any_axes(lambda *qkv: Longformer.apply(*qkv, *how))
    exactly = without_autocast(on_any_axes(exactly))
    return unfelt(attend, q, k, v, exactly=exactly)


def check_global(global_at: Sequence[int], n_k: int) -> None:
    """Raise unless each global token is at a key of its own."""
    for at in global_at:
        check_whole(global_at=at)
    outside = any(not 0 <= at < max(n_k, 1) for at in global_at)
    if outside or len(set(global_at)) < len(global_at):
        raise ValueError(
            "each global token must be at a key of its own, but "
            f"global_at={list(global_at)} and n_k={n_k}"
        )


class Band(NamedTuple):
    """Some queries, and the keys near them; the global keys come besides."""

    rows: slice | Tensor
    keys: slice
    seen: Tensor  # (rows, global keys and keys)


def bands(
    q: Tensor, k: Tensor, where: list[int], window: int, causal: bool
) -> Iterator[Band]:
    """The bands of the window, and then the global queries with all keys.

    In the bands the global keys are hidden, which come besides, and the
    global queries see nothing: their turn is at the end.
    """
    n_q, n_k = q.shape[-2], k.shape[-2]
    first = n_k - n_q  # where the first query sits
    i, j = indices(n_q, n_k, device=q.device)
    at = rows_of(where, q)
    sees_all, seen_by_all = torch.isin(i, at), torch.isin(j, at)

    def band(rows: slice | Tensor, keys: slice, near: Tensor) -> Band:
        everywhere = near.new_ones(len(near), len(at))
        seen = torch.cat([everywhere, near & ~seen_by_all[:, keys]], dim=-1)
        if causal:
            seen &= torch.cat([at, j[0, keys]]) <= i[rows]
        return Band(rows, keys, seen)

    for rows in blocks(0, n_q, BLOCK):
        begin = max(0, rows.start + first - window + 1)
        end = rows.stop + first + (0 if causal else window - 1)
        keys = slice(begin, max(begin, min(end, n_k)))
        near = (i[rows] - j[:, keys]).abs() < window
        of_window = band(rows, keys, near)
        yield of_window._replace(seen=of_window.seen & ~sees_all[rows])
    asking = [x - first for x in where if x >= first]
    for part in blocks(0, len(asking), BLOCK):
        some = rows_of(asking[part], q)
        near = torch.ones_like(seen_by_all).expand(len(some), n_k)
        yield band(some, slice(0, n_k), near)


def rows_of(where: list[int], like: Tensor) -> Tensor:
    """Numbers of tokens, to pick them by."""
    return torch.tensor(where, dtype=torch.long, device=like.device)


class Longformer(torch.autograd.Function):
    """Both passes by hand, on (batch, n, d), as for the window alone.

    Autograd would fill a gradient as long as k and v for every band, which
    is quadratic. Here each band adds to its own rows of one gradient.
    Autocast is off in both: it would round what many bands add up to.
    """

    @staticmethod
    @without_autocast
    def forward(ctx: Any, q, k, v, where, window, causal):
        """Attend band by band, writing into one output."""
        attend = partial(band_by_band, q, k, v, where, window, causal)
        output = keeping_nan(attend, q, k)
        ctx.save_for_backward(q, k, v, output)
        ctx.where, ctx.window, ctx.causal = where, window, causal
        return output

    @staticmethod
    @without_autocast
    def backward(ctx: Any, grad_output):
        """Make each band's weights anew, and add up what they pass back."""
        check_once("longformer_attention", grad_output)
        q, k, v, output = ctx.saved_tensors
        at = rows_of(ctx.where, q)
        grad_q, grad_k, grad_v = widen(*map(torch.zeros_like, (q, k, v)))
        scale = 1 / math.sqrt(q.shape[-1])
        for rows, keys, seen in bands(q, k, ctx.where, ctx.window, ctx.causal):
            queries, near, values, grad = widen(
                q[:, rows],
                with_global(k, at, keys),
                with_global(v, at, keys),
                grad_output[:, rows],
            )
            # A row of -inf is NaN to softmax; and it must pass nothing back.
            empty = ~seen.any(dim=-1, keepdim=True)
            added = unless(seen | empty, queries)
            # Scaled after the product: alike keys must have alike scores.
            scores = torch.baddbmm(added, queries, near.mT, alpha=scale)
            weights = softmax_again(scores, added).masked_fill_(empty, 0.0)
            add_global(grad_v, at, keys, weights.mT @ grad)
            grad_weights = grad @ values.mT
            dots = averaged(grad_weights, weights, grad, output[:, rows])
            grad_scores = grad_weights.sub_(dots).mul_(weights)
            grad_q[:, rows] += grad_scores @ near
            add_global(grad_k, at, keys, grad_scores.mT @ queries)
        for grad in (grad_q, grad_k):
            grad *= scale
        grads = (grad_q.to(q.dtype), grad_k.to(k.dtype), grad_v.to(v.dtype))
        return *grads, None, None, None


def band_by_band(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    where: list[int],
    window: int,
    causal: bool,
    kernel: Kernel,
) -> Tensor:
    """What the kernel gives, band by band, in one output."""
    output = q.new_empty(*q.shape[:-1], v.shape[-1])
    at = rows_of(where, q)
    for rows, keys, seen in bands(q, k, where, window, causal):
        # PyTorch's fused kernel wants four axes.
        output[:, rows] = kernel(
            q[None, :, rows],
            with_global(k, at, keys)[None],
            with_global(v, at, keys)[None],
            attn_mask=unless(seen, q),
        )[0]
    return output


def unless(seen: Tensor, like: Tensor) -> Tensor:
    """What to add to scores: 0 where a key is seen, -inf where not."""
    hidden = like.new_zeros(seen.shape)
    return hidden.masked_fill_(~seen, -math.inf)


def with_global(x: Tensor, at: Tensor, keys: slice) -> Tensor:
    """The global tokens' rows, and then those of a band."""
    return torch.cat([x[:, at], x[:, keys]], dim=-2)


def add_global(grad: Tensor, at: Tensor, keys: slice, part: Tensor) -> None:
    """Add to the rows that `with_global` took."""
    grad[:, at] += part[:, : len(at)]
    grad[:, keys] += part[:, len(at) :]
