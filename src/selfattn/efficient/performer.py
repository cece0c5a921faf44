"""Performer: estimate exp(q·k) by random features, and reorder the product.

Computes:  an estimate of `attention`: weights φ(q)φ(k)ᵀ, rows normalised
Time:      O(n m d), m features  Memory: O(n d), and one memory of m x d_v
Supports:  causal
Reference: Choromanski et al. (2021), sections 2.3 and 2.4
"""

import math
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from selfattn.checks import batch_shape, check_call, check_once, check_shapes
from selfattn.dot_product import (
    Bias,
    Keys,
    Mask,
    Output,
    Queries,
    Table,
    Values,
    masked_softmax,
    refuse,
    widen,
    with_causal,
)
from selfattn.hidden import match, unfelt_sums
from selfattn.infinite import on_smaller
from selfattn.pieces import chunks, one_batch_axis, without_autocast
from selfattn.random_features import (
    log_features,
    log_products,
    random_directions,
)
from selfattn.signatures import Seed, checked
from selfattn.spoilt import overflows, projected
from selfattn.underflow import loses_a_row

CHUNK = 64  # tokens at a time: the features of so many are held at once
# Features are at most e²⁰, not 1: a product of two may then be as small as
# e⁻¹²⁷ of the largest before it rounds to zero, and none overflows.
ROOM = 20.0
# A sum of weights that is smaller is none: what is divided by it, and times a
# memory of large features, must not overflow.
LEAST = {torch.float32: math.exp(-35.0), torch.float64: math.exp(-600.0)}


@checked
def performer_weights(
    q: Queries,
    k: Keys,
    *,
    causal: bool = False,
    n_features: int = 256,
    seed: Seed = 0,
    orthogonal: bool = True,
) -> Table:
    """The weights that Performer stands for, and never makes.

    Those of softmax are exp(qᵢ·kⱼ/√d), divided by the sum of the row; here
    each exponential is estimated by a product of features, φ(qᵢ)·φ(kⱼ).
    `performer_attention` is these weights times the values, in another order:
    φ(q) (φ(k)ᵀ v) instead of (φ(q) φ(k)ᵀ) v, so that no table is made.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        causal: hide from each query the keys after it; the last query sits
            on the last key.
        n_features: how many random directions ω.
        seed: of the directions; other ones for another seed.
        orthogonal: whether they are drawn orthogonal, which errs less.

    Returns:
        Weights, (..., n_q, n_k), whose rows sum to one; those of a query that
        may see no key are zeros.

    Reference: Choromanski et al. (2021), equations 1, 2 and 5.

    >>> from selfattn.dot_product import attention_weights
    >>> q, k = torch.tensor([[1.0, 0.0]]), torch.eye(2)
    >>> attention_weights(q, k)
    tensor([[0.6698, 0.3302]])
    >>> performer_weights(q, k, n_features=4096)
    tensor([[0.6710, 0.3290]])
    """
    check_shapes(q, k, k)
    d = q.shape[-1]
    omega = random_directions(n_features, d, seed=seed, orthogonal=orthogonal)
    if not overflows(q, k):
        weights = estimates(q, k, omega, causal)
        if not loses_a_row(weights, causal, k):
            return weights
    weights = estimates(q.double(), k.double(), omega, causal)
    return weights.to(widen(q)[0].dtype)


@without_autocast
def estimates(q: Tensor, k: Tensor, omega: Tensor, causal: bool) -> Tensor:
    """The weights, computed in the type of q or, if that is half, float32."""
    d = q.shape[-1]
    q, k, omega = widen(q, k, omega.to(q.device))
    logs = partial(log_features, omega=omega)
    # Divided by d^¼ each, the product of q and k is q·k/√d.
    log_q = projected(logs, q / d**0.25, draws=False)
    log_k = projected(logs, k / d**0.25, draws=False)
    scores = match(log_q, log_k, log_products)
    return masked_softmax(scores, with_causal(None, causal, q, k))


def performer_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    n_features: int = 256,
    seed: Seed = 0,
    orthogonal: bool = True,
) -> Output:
    """Average the values by an estimate of exp(qᵢ·kⱼ/√d), linear in n.

    The features are positive, φ(x) = exp(ω·x − |x|²/2), with x divided by
    d^¼: on average over ω, φ(q)·φ(k) is exp(q·k/√d). The estimate's spread
    grows with exp(|q + k|²/√d), so it is for queries and keys that are short.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
        mask: refused: keys are summed up before any query is looked at.
        bias: refused, likewise.
        causal: hide from each query the keys after it; the last query sits
            on the last key.
        n_features: how many random directions ω; the error falls as the root
            of their number grows.
        seed: of the directions; other ones for another seed.
        orthogonal: whether they are drawn orthogonal, which errs less.

    Returns:
        The output, (..., n_q, d_v). A query that may see no key gets zeros,
        and so does one whose sum of weights is under e⁻⁶⁰⁰ of what the
        largest features allow, as of queries and keys some hundreds long. It
        can be differentiated once, not twice.

    Raises:
        ValueError: if shapes do not fit together, there are no features, or a
            mask or bias is given.

    Reference: Choromanski et al. (2021), sections 2.3 and 2.4, lemma 1.

    >>> from selfattn.dot_product import attention
    >>> q, k, v = torch.randn(3, 100, 16) / 2
    >>> exact = attention(q, k, v)
    >>> few = performer_attention(q, k, v, n_features=16) - exact
    >>> many = performer_attention(q, k, v, n_features=4096) - exact
    >>> bool(many.norm() < few.norm() / 4)
    True
    """
    check_call("performer_attention", q, k, v, causal)
    why = "it sums up the keys before it looks at a query"
    refuse("performer_attention", why, mask, bias)
    omega = random_directions(
        n_features, q.shape[-1], seed=seed, orthogonal=orthogonal
    )
    if not overflows(q, k, v):
        output = by_features(q, k, v, omega, causal)
        if not loses_a_row(output, causal, k, v):
            return output
    attend = partial(by_features, omega=omega, causal=causal)
    wide = q.double(), k.double(), v.double()
    return on_smaller(attend, *wide, math.exp(2 * ROOM)).to(q.dtype)


def by_features(
    q: Tensor, k: Tensor, v: Tensor, omega: Tensor, causal: bool
) -> Tensor:
    """The output, computed in the type of q or, if that is half, float32."""
    [like] = widen(q[..., :0])
    omega = omega.to(like) / q.shape[-1] ** 0.25

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        output = Performer.apply(*one_batch_axis(q, k, v), omega, causal)
        return output.reshape(*batch_shape(q, k, v), *output.shape[-2:])

    return unfelt_sums(attend, q, k, v)


class Performer(torch.autograd.Function):
    """Both passes by hand, on (batch, n, d), chunk by chunk.

    The features of all tokens would be the largest tensors by far; here those
    of a chunk are made, used, and made again on the way back. Each feature
    is divided by its token's largest, else exp overflows: for a query, whose
    weights are divided by their sum, that changes nothing. For keys it must
    be undone, at the level of the largest among those that the query sees,
    and not of all: a key of the future would else push the past to zero.
    Autocast is off in both: it would round what many tokens add up to.
    """

    @staticmethod
    @without_autocast
    def forward(ctx: Any, q, k, v, omega, causal):
        """Read the chunks in order; answer from memory and from the chunk."""
        # In float32 at least: what two terms of the way back leave of each
        # other may be less than half precision rounds away.
        [output] = widen(q.new_empty(*q.shape[:-1], v.shape[-1]))
        level, inverse = widen(*q.new_zeros(2, *q.shape[:-1], 1))
        memory = empty_memory(k, v, omega, -1)
        order = chunks(q.shape[-2], k.shape[-2], CHUNK, causal=causal)
        for rows, keys in order:
            chunk = read(q, k, v, omega, rows, keys, memory.level)
            shrink = (memory.level - chunk.level).exp_()
            summed = chunk.f_q @ memory.pairs * shrink
            total = chunk.f_q @ memory.total.mT * shrink
            among = chunk.weights()
            total += among.sum(dim=-1, keepdim=True)
            # Where nothing is seen, or as good as nothing, there is nothing.
            divided = total.reciprocal()
            divided.masked_fill_(total < LEAST[total.dtype], 0.0)
            summed = torch.baddbmm(summed, among, chunk.values)
            output[:, rows] = summed.mul_(divided)
            level[:, rows], inverse[:, rows] = chunk.level, divided
            memory = chunk.remember(memory)
        ctx.save_for_backward(q, k, v, omega, output, level, inverse, *memory)
        ctx.causal = causal
        return output.to(q.dtype)

    @staticmethod
    @without_autocast
    def backward(ctx: Any, grad_output):
        """Read the chunks backwards; causal, before that in order again."""
        check_once("performer_attention", grad_output)
        q, k, v, omega, output, level, inverse, *memory = ctx.saved_tensors
        grad_q, grad_k, grad_v = (torch.empty_like(x) for x in (q, k, v))
        lengths = q.shape[-2], k.shape[-2]
        order = [*chunks(*lengths, CHUNK, causal=ctx.causal)]

        def read_again(rows: slice, keys: slice) -> ChunkBack:
            chunk = read(q, k, v, omega, rows, keys, None, level)
            grad = grad_output[:, rows] * inverse[:, rows]
            dots = (grad * output[:, rows]).sum(dim=-1, keepdim=True)
            return ChunkBack(chunk, grad, -dots)

        start = empty_memory(k, v, omega, -1)
        before = start if ctx.causal else Memory(*memory)
        for rows, keys in order if ctx.causal else []:
            back = read_again(rows, keys)
            grad_q[:, rows] = back.to_queries(before) @ omega
            before = back.chunk.remember(before)
        after = empty_memory(k, v, omega, 1)
        for rows, keys in reversed(order):
            back = read_again(rows, keys)
            if not ctx.causal:  # every key came before every query
                grad_q[:, rows] = back.to_queries(before) @ omega
            grad_logs, grad_v[:, keys] = back.to_keys(after)
            lengths = grad_logs.sum(dim=-1, keepdim=True) * k[:, keys]
            grad_k[:, keys] = grad_logs @ omega - lengths / q.shape[-1] ** 0.5
            after = back.remember(after)
        return grad_q, grad_k, grad_v, None, None


class Memory(NamedTuple):
    """Sums over tokens, divided by the exponential of a level."""

    pairs: Float[Tensor, "batch features d_v"]  # Σ φ(k) vᵀ
    total: Float[Tensor, "batch 1 features"]  # Σ φ(k)
    level: Float[Tensor, "batch 1 1"]

    def add(self, f: Tensor, values: Tensor, weight: Tensor, level: Tensor):
        """The memory with these tokens, at this level; in place."""
        shrink = (self.level - level).abs_().neg_().exp_()
        # Not `baddbmm_`, which PyTorch's counter of operations passes over.
        pairs, total = self.pairs.mul_(shrink), self.total.mul_(shrink)
        torch.baddbmm(pairs, f.mT, values, out=pairs)
        return Memory(pairs, total.add_(weight.mT @ f), level)


class Chunk(NamedTuple):
    """Some queries and some keys, read."""

    f_q: Tensor  # features, divided by their largest
    f_k: Tensor
    values: Tensor
    height: Tensor  # the logarithm of what each key's were divided by
    level: Tensor  # the largest height up to each query

    def weights(self) -> Tensor:
        """Of its queries and keys, by their features and heights."""
        return (self.f_q @ self.f_k.mT).mul_(self.past())

    def past(self) -> Tensor:
        """How much each key's features count to each query; none to come."""
        apart = self.height.mT - self.level
        return apart.clamp_(max=0).exp_().tril_()

    def remember(self, memory: Memory) -> Memory:
        """The memory with this chunk's keys."""
        heights = torch.cat([memory.level, self.height], dim=-2)
        level = heights.amax(dim=-2, keepdim=True)
        weight = (self.height - level).exp_()
        return memory.add(self.f_k, self.values * weight, weight, level)


class ChunkBack(NamedTuple):
    """A chunk on the way back."""

    chunk: Chunk
    grad: Tensor  # of the sums of weighted values
    dots: Tensor  # of the sums of weights

    def among(self) -> Tensor:
        """The gradient of the products of features within the chunk."""
        grad_weights = self.grad @ self.chunk.values.mT
        return grad_weights.add_(self.dots).mul_(self.chunk.past())

    def to_queries(self, before: Memory) -> Tensor:
        """The gradient of the logarithms of the queries' features."""
        shrink = (before.level - self.chunk.level).exp_()
        grad = (self.grad * shrink) @ before.pairs.mT
        grad = torch.baddbmm(grad, self.dots * shrink, before.total)
        grad = torch.baddbmm(grad, self.among(), self.chunk.f_k)
        return grad.mul_(self.chunk.f_q)

    def to_keys(self, after: Memory) -> tuple[Tensor, Tensor]:
        """Of those of the keys' features, and of the values."""
        f_q, f_k, values, height, _ = self.chunk
        shrink = (height - after.level).exp_()
        grad = (values * shrink) @ after.pairs.mT
        grad = torch.baddbmm(grad, shrink, after.total)
        grad = torch.baddbmm(grad, self.among().mT, f_q).mul_(f_k)
        grad_values = (f_k @ after.pairs).mul_(shrink)
        weights = self.chunk.weights()
        return grad, torch.baddbmm(grad_values, weights.mT, self.grad)

    def remember(self, after: Memory) -> Memory:
        """What the queries ask of all keys before this chunk's."""
        level = torch.cat([self.chunk.level, after.level], dim=-2)[:, :1]
        weight = (level - self.chunk.level).exp_()
        dots = self.dots * weight
        return after.add(self.chunk.f_q, self.grad * weight, dots, level)


def read(q, k, v, omega, rows: slice, keys: slice, before, levels=None):
    """A chunk's features; and the levels of its queries, if not yet known."""
    queries, near, values = widen(q[:, rows], k[:, keys], v[:, keys])
    f_q, _ = features(queries, omega)
    f_k, top = features(near, omega)
    square = near.square().sum(dim=-1, keepdim=True)
    height = top - square / (2 * math.sqrt(k.shape[-1]))
    if levels is not None:
        return Chunk(f_q, f_k, values, height, levels[:, rows])
    level = torch.cat([before, height], dim=-2).cummax(dim=-2).values
    # Queries go side by side with keys, or with none after all of them.
    level = level[:, level.shape[-2] - f_q.shape[-2] :]
    return Chunk(f_q, f_k, values, height, level)


def features(x: Tensor, omega: Tensor) -> tuple[Tensor, Tensor]:
    """exp(ω·x) over the largest of its kind, and the logarithm of that."""
    logs = x @ omega.mT
    top = logs.amax(dim=-1, keepdim=True)
    return logs.sub_(top - ROOM).exp_(), top


def empty_memory(k: Tensor, v: Tensor, omega: Tensor, sign: int) -> Memory:
    """The memory of no tokens, above any level or, with -1, below any."""
    batch, n_features = k.shape[0], omega.shape[0]  # `len` closes open axes
    pairs = omega.new_zeros(batch, n_features, v.shape[-1])
    total = omega.new_zeros(batch, 1, n_features)
    level = sign * torch.finfo(omega.dtype).max / 4  # as inf - inf is NaN
    return Memory(pairs, total, omega.new_full((batch, 1, 1), level))
