"""FlashAttention's idea: attention without ever holding the n x n matrix.

Computes:  exactly `attention`
Time:      O(n_q n_k d)         Memory: O(n d), and one tile of scores
Supports:  mask, bias, causal
Reference: Dao et al. (2022), algorithms 1 and 4; Milakov and Gimelshein (2018)
"""

import math
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from selfattn.checks import (
    batch_shape,
    check_flag,
    check_once,
    check_shapes,
    check_whole,
)
from selfattn.dot_product import (
    Bias,
    Keys,
    Mask,
    Output,
    Queries,
    Values,
    widen,
)
from selfattn.hidden import all_seen, unfelt
from selfattn.infinite import level
from selfattn.pieces import LOG2_E, add_product, blocks, without_autocast
from selfattn.tiles import Gradients, Inputs, cut, product
from selfattn.transforms import check_transforms, settled


def flash_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    block_q: int = 512,
    block_k: int = 512,
) -> Output:
    """Attention tile by tile, forwards and backwards: exact, in O(n) memory.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
        mask: True where a query may attend; broadcasts to (..., n_q, n_k).
        bias: added to the scaled scores; broadcasts to (..., n_q, n_k). It
            may be trained: its gradient is as large as itself, no larger.
        causal: hide from each query the keys after it; the last query sits
            on the last key. Tiles that lie in the future are skipped.
        block_q: how many queries a tile has.
        block_k: how many keys a tile has.

    Returns:
        The output, (..., n_q, d_v). A query that may see no key gets zeros.
        It can be differentiated once, not twice.

    Raises:
        ValueError: if shapes or types do not fit together, or a tile has no
            queries or no keys.

    Reference: Dao et al. (2022), algorithms 1 and 4.

    >>> q, k, v = torch.randn(3, 100, 8)
    >>> one_tile = flash_attention(q, k, v, causal=True)
    >>> many = flash_attention(q, k, v, causal=True, block_q=7, block_k=13)
    >>> torch.allclose(one_tile, many, atol=1e-6)
    True
    """
    return tiled(q, k, v, mask, bias, causal, block_q, block_k).output


def flash_attention_with_logsumexp(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    block_q: int = 512,
    block_k: int = 512,
) -> tuple[Output, Float[Tensor, "... n_q"]]:
    """The output, and the logarithm of what each softmax divided by.

    With it, attentions over different keys can be joined as if all the keys
    had been there at once: that is how attention spreads over devices.

    Arguments and errors are those of `flash_attention`.

    Returns:
        The output, (..., n_q, d_v), and log Σⱼ exp(scoreⱼ), (..., n_q), which
        is minus infinity for a query that may see no key.

    Reference: Milakov and Gimelshein (2018); Dao et al. (2022), appendix B.

    >>> q, k, v = torch.randn(1, 8), torch.randn(6, 8), torch.randn(6, 2)
    >>> a, a_sum = flash_attention_with_logsumexp(q, k[:4], v[:4])
    >>> b, b_sum = flash_attention_with_logsumexp(q, k[4:], v[4:])
    >>> share = torch.sigmoid(a_sum - b_sum)[:, None]
    >>> joined = share * a + (1 - share) * b
    >>> torch.allclose(joined, flash_attention(q, k, v), atol=1e-6)
    True
    """
    return tiled(q, k, v, mask, bias, causal, block_q, block_k)[:2]


class Parts(NamedTuple):
    """What attention to some of the keys is, before it is joined to others.

    Large scores leave no digits for the logarithm of their number: joined by
    it, two keys of one score of 1e8 are one key. So both are kept apart.
    """

    output: Tensor  # (..., n_q, d_v)
    log_sum: Tensor  # (..., n_q), log Σⱼ exp(scoreⱼ)
    top: Tensor  # (..., n_q), the largest score, in powers of two: m
    total: Tensor  # (..., n_q), Σⱼ 2^(scoreⱼ - top): ℓ in the paper


def tiled(
    q, k, v, mask, bias, causal: bool, block_q: int = 512, block_k: int = 512
) -> Parts:
    """All results, once it is clear that everything fits together."""
    check_shapes(q, k, v, mask, bias)
    given = (q, k, v) if bias is None else (q, k, v, bias)
    check_transforms("flash_attention", *given)
    check_flag("causal", causal)
    check_whole(block_q=block_q, block_k=block_k)
    if min(block_q, block_k) < 1:
        raise ValueError(
            "a tile needs at least one query and one key, but "
            f"block_q={block_q} and block_k={block_k}"
        )
    block_q, block_k = settled(block_q, block_k)
    batch = batch_shape(q, k, v)
    q, k, v = (x.expand(*batch, -1, -1) for x in (q, k, v))

    def attend(q: Tensor, k: Tensor, v: Tensor, flat: bool = False) -> Parts:
        added = level(bias) if flat and bias is not None else bias
        options = added, causal, block_q, block_k
        return Parts(*Flash.apply(q, k, v, mask, *options))

    if mask is None and bias is None and not causal:  # all see all
        return Parts(*all_seen(attend, q, k, v))
    return Parts(*unfelt(attend, q, k, v, level=partial(attend, flat=True)))


class Flash(torch.autograd.Function):
    """Both passes by hand: the paper's algorithms 1 and 4.

    Autograd alone would keep every tile of weights for the way back. Here
    the way back makes them anew, from the scores, their largest and their
    sum.

    Autocast is off in both: it would round what many tiles add up to.
    """

    @staticmethod
    @without_autocast
    def forward(ctx: Any, q, k, v, mask, bias, causal, block_q, block_k):
        """Take each block of queries along the keys."""
        inputs = Inputs(q, k, v, mask, bias, causal, block_k)
        # In float32 at least: what two terms of the way back leave of each
        # other may be less than half precision rounds away.
        [output] = widen(q.new_empty(*q.shape[:-1], v.shape[-1]))
        top, total = widen(
            q.new_empty(q.shape[:-1]), q.new_empty(q.shape[:-1])
        )
        heads = [*inputs.heads(block_q)]
        room = inputs.at(heads[0]).room(block_q)
        for which in heads:
            head = inputs.at(which)
            for rows in blocks(0, q.shape[-2], block_q):
                result, m, length = online_softmax(head, rows, room)
                output[which][..., rows, :] = result
                top[which][..., rows] = m
                total[which][..., rows] = length
        ctx.save_for_backward(q, k, v, mask, bias, output, top, total)
        ctx.options = causal, block_q, block_k
        ctx.mark_non_differentiable(top, total)
        log_sum = total.log().add_(top, alpha=1 / LOG2_E)
        return output.to(q.dtype), log_sum, top, total

    @staticmethod
    @without_autocast
    def backward(ctx: Any, grad_output, grad_sums, *_):
        """Visit the same tiles again."""
        check_once("flash_attention", grad_output, grad_sums)
        q, k, v, mask, bias, output, top, total = ctx.saved_tensors
        causal, block_q, block_k = ctx.options
        inputs = Inputs(q, k, v, mask, bias, causal, block_k)
        learned = bias if ctx.needs_input_grad[4] else None
        zeros = (
            x if x is None else x.new_zeros(x.shape)
            for x in (q, k, v, learned)
        )
        into = Gradients(*widen(*zeros))
        heads = [*inputs.heads(block_q)]
        rooms = [inputs.at(heads[0]).room(block_q) for _ in range(2)]
        for which in heads:
            head, back = inputs.at(which), into.at(which)
            for rows in blocks(0, q.shape[-2], block_q):
                [grad] = widen(grad_output[which][..., rows, :])
                # D of the paper: Σ weights · their gradients, over all keys.
                dots = (grad * output[which][..., rows, :]).sum(-1)
                dots -= grad_sums[which][..., rows]
                m, length = (x[which][..., rows] for x in (top, total))
                add_gradients(head, back, rows, grad, dots, m, length, rooms)
        into.k.div_(math.sqrt(q.shape[-1]))
        grads = (
            g if g is None else g.to(x.dtype)
            for g, x in zip(into, (q, k, v, bias), strict=True)
        )
        grad_q, grad_k, grad_v, grad_bias = grads
        return grad_q, grad_k, grad_v, None, grad_bias, None, None, None


def online_softmax(
    head: Inputs, rows: slice, room: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The output of a block of queries, and m and ℓ of its scores.

    After each tile, the sums are those over the keys seen so far. When a
    tile brings a larger score, what was summed before shrinks accordingly.
    """
    queries = head.queries(rows)
    # The lowest finite number and not -inf, because -inf - -inf is NaN.
    lowest = torch.finfo(queries.dtype).min
    top = queries.new_full((*queries.shape[:-1], 1), lowest)
    total = torch.zeros_like(top)
    summed = queries.new_zeros(*queries.shape[:-1], head.v.shape[-1])
    for keys in head.blocks_of_keys(rows):
        scores = head.scores(queries, rows, keys, room)
        new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        weights = scores.sub_(new_top).exp2_()
        shrink = top.sub_(new_top).exp2_()
        total.mul_(shrink).add_(weights.sum(dim=-1, keepdim=True))
        add_product(summed.mul_(shrink), weights, head.v[..., keys, :])
        top = new_top
    output = summed.div_(total.masked_fill(total == 0, 1.0))
    return output, top.squeeze(-1), total.squeeze(-1)


def add_gradients(
    head: Inputs, into: Gradients, rows: slice, grad, dots, top, total, rooms
):
    """Add what one block of queries passes back to q, k, v and the bias.

    Softmax passes back weights · (grad − dots), and weights are 2^(score −
    top) over the total: which is put on what they are multiplied with.
    """
    queries = head.queries(rows)
    grad_queries = into.q[..., rows, :]
    # A query that saw nothing has only scores of -inf; 2^(-inf - top) = 0.
    share = total.masked_fill(total == 0, 1.0).reciprocal()[..., None]
    grad, dots = grad * share, dots[..., None] * share
    for keys in head.blocks_of_keys(rows):
        scores = head.scores(queries, rows, keys, rooms[0])
        weights = scores.sub_(top[..., None]).exp2_()
        add_product(into.v[..., keys, :], weights.mT, grad)
        grad_weights = product(grad, head.v[..., keys, :], rooms[1])
        grad_scores = grad_weights.sub_(dots).mul_(weights)
        add_product(grad_queries, grad_scores, head.k[..., keys, :])
        add_product(into.k[..., keys, :], grad_scores.mT, queries)
        if into.bias is not None:
            here = cut(into.bias, rows, keys)
            here += grad_scores.sum_to_size(here.shape)
    grad_queries /= math.sqrt(head.q.shape[-1])
