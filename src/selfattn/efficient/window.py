"""Sliding-window attention: each token looks at its neighbours only.

Computes:  exactly `attention` with `window_mask` (and `causal_mask`)
Time:      O(n w d)             Memory: O(n d), and one band of scores
Supports:  causal
Reference: Beltagy et al. (2020), section 3.1
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from selfattn.checks import check_call, check_once, check_window
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
from selfattn.pieces import (
    add_product,
    averaged,
    on_any_axes,
    softmax_again,
    without_autocast,
)
from selfattn.transforms import settled

BLOCK = 64  # queries at a time; fewer than a window, or most scores are waste


def sliding_window_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    window: int,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
) -> Output:
    """Attend to the keys less than ``window`` away, and to no others.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
        window: how many keys to each side, the query's own counted; at
            least 1. The last query sits on the last key.
        mask: refused: use `flash_attention` with ``window_mask(...) & mask``.
        bias: refused, likewise.
        causal: hide from each query the keys after it, which leaves it its
            last ``window`` keys.

    Returns:
        The output, (..., n_q, d_v). A query that may see no key gets zeros.
        It can be differentiated once, not twice.

    Raises:
        ValueError: if shapes do not fit together, the window is smaller than
            1, or a mask or bias is given.

    Reference: Beltagy et al. (2020), section 3.1.

    >>> from selfattn.masks import window_mask
    >>> from selfattn.dot_product import attention
    >>> q, k, v = torch.randn(3, 100, 8)
    >>> near = sliding_window_attention(q, k, v, window=5)
    >>> same = attention(q, k, v, mask=window_mask(100, 100, 5))
    >>> torch.allclose(near, same, atol=1e-6)
    True
    """
    check_call("sliding_window_attention", q, k, v, causal)
    why = "it makes no table of scores to put it on"
    refuse("sliding_window_attention", why, mask, bias)
    check_window(window)
    [window] = settled(window)

    def exactly(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return block_by_block(q, k, v, window, causal, by_definition)

    attend = on_any_axes(
        lambda *qkv: SlidingWindow.apply(*qkv, window, causal)
    )
    exactly = without_autocast(on_any_axes(exactly))
    return unfelt(attend, q, k, v, exactly=exactly)


class Band(NamedTuple):
    """A block of queries, and the keys that any of them may see."""

    rows: slice
    keys: slice
    hidden: Tensor  # (rows, keys): -inf where a query may not look, else 0


def bands(q: Tensor, k: Tensor, window: int, causal: bool) -> Iterator[Band]:
    """Cut the band of the window mask into blocks of ``BLOCK`` queries.

    Queries that see no key come first, if there are any, and in no block.
    """
    n_q, n_k = q.shape[-2], k.shape[-2]
    window = min(window, max(n_q, n_k))
    # One key more than is seen: with a window of 256, say, rows of scores
    # then start where the processor likes to load from.
    left, right = window, 0 if causal else window
    i = torch.arange(left, left + BLOCK, device=q.device)[:, None]
    j = torch.arange(left + BLOCK + right, device=q.device)
    unseen = (i - j).abs() >= window
    if causal:
        unseen |= j > i
    hidden = q.new_zeros(unseen.shape).masked_fill_(unseen, -math.inf)
    for start in range(first_seeing(n_q, n_k, window, causal), n_q, BLOCK):
        stop = min(start + BLOCK, n_q)
        begin = start + n_k - n_q - left  # of the keys that `hidden` tells of
        keys = slice(max(0, begin), min(n_k, stop + n_k - n_q + right))
        part = hidden[: stop - start, keys.start - begin : keys.stop - begin]
        yield Band(slice(start, stop), keys, part)


def first_seeing(n_q: int, n_k: int, window: int, causal: bool) -> int:
    """The first query that sees a key: with n_q > n_k, some come too early."""
    if n_k == 0:
        return n_q
    return max(0, n_q - n_k - (0 if causal else window - 1))


class SlidingWindow(torch.autograd.Function):
    """Both passes by hand, on (batch, n, d).

    Autograd would fill a gradient as long as k and v for every block, which
    is quadratic. Here each block adds to its own rows of one gradient.
    Autocast is off in both: it would round what many blocks add up to.
    """

    @staticmethod
    @without_autocast
    def forward(ctx: Any, q, k, v, window, causal):
        """Attend block by block, writing into one output."""
        attend = partial(block_by_block, q, k, v, window, causal)
        output = keeping_nan(attend, q, k)
        ctx.save_for_backward(q, k, v, output)
        ctx.window, ctx.causal = window, causal
        return output

    @staticmethod
    @without_autocast
    def backward(ctx: Any, grad_output):
        """Make each block's weights anew, and add up what they pass back."""
        check_once("sliding_window_attention", grad_output)
        q, k, v, output = ctx.saved_tensors
        grad_q, grad_k, grad_v = widen(*map(torch.zeros_like, (q, k, v)))
        scale = 1 / math.sqrt(q.shape[-1])
        for rows, keys, hidden in bands(q, k, ctx.window, ctx.causal):
            queries, near, values, grad = widen(
                q[:, rows], k[:, keys], v[:, keys], grad_output[:, rows]
            )
            # Scaled after the product: alike keys must have alike scores.
            scores = torch.baddbmm(
                hidden.to(queries), queries, near.mT, alpha=scale
            )
            weights = softmax_again(scores, hidden)
            add_product(grad_v[:, keys], weights.mT, grad)
            grad_weights = grad @ values.mT
            dots = averaged(grad_weights, weights, grad, output[:, rows])
            grad_scores = grad_weights.sub_(dots).mul_(weights)
            grad_q[:, rows] = grad_scores @ near
            add_product(grad_k[:, keys], grad_scores.mT, queries)
        for grad in (grad_q, grad_k):
            grad *= scale
        grads = (grad_q.to(q.dtype), grad_k.to(k.dtype), grad_v.to(v.dtype))
        return *grads, None, None


def block_by_block(
    q: Tensor, k: Tensor, v: Tensor, window: int, causal: bool, kernel: Kernel
) -> Tensor:
    """What the kernel gives, block by block, in one output."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    output = q.new_empty(*q.shape[:-1], v.shape[-1])
    output[:, : first_seeing(n_q, n_k, window, causal)] = 0
    for rows, keys, hidden in bands(q, k, window, causal):
        # PyTorch's fused kernel wants four axes.
        output[:, rows] = kernel(
            q[None, :, rows],
            k[None, :, keys],
            v[None, :, keys],
            attn_mask=hidden,
        )[0]
    return output
