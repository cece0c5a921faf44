"""Performer: estimate exp(q·k) by random features, and reorder the product.

Computes:  an estimate of `attention`: weights φ(q)φ(k)ᵀ, rows normalised
Time:      O(n m d), m features  Memory: O(n d), and one memory of m x d_v
Supports:  causal
Reference: Choromanski et al. (2021), sections 2.3 and 2.4
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from selfattn.checks import batch_shape, check_once, check_shapes
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

CHUNK = 64  # tokens at a time: the features of so many are held at once
# Features are at most e²⁰, not 1: a product of two may then be as small as
# e⁻¹²⁷ of the largest before it rounds to zero, and none overflows.
ROOM = 20.0
LEAST = math.exp(-35.0)  # a sum of weights that is smaller is none


def random_directions(
    n_features: int, d: int, *, seed: int = 0, orthogonal: bool = True
) -> Float[Tensor, "n_features d"]:
    """Random vectors ω, each standard normal; those of a block orthogonal.

    Args:
        n_features: how many.
        d: how long; each d of them are orthogonal to one another.
        seed: other numbers for another seed. The global generator is not
            touched.
        orthogonal: False draws each by itself.

    Returns:
        The vectors, (n_features, d), in float32.

    Raises:
        ValueError: if there is to be no vector, or it has no numbers.

    Reference: Choromanski et al. (2021), section 2.4.

    >>> ω = random_directions(5, 3)
    >>> abs(ω[0] @ ω[1]) < 1e-5, abs(ω[1] @ ω[2]) < 1e-5
    (tensor(True), tensor(True))
    """
    if min(n_features, d) < 1:
        raise ValueError(
            "there must be at least 1 feature of at least 1 number, but "
            f"n_features={n_features} and d={d}"
        )
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(n_features, d, generator=generator)
    if not orthogonal:
        return normal
    n_blocks = math.ceil(n_features / d)
    square = torch.randn(n_blocks, d, d, generator=generator)
    turned, upper = torch.linalg.qr(square)
    # Without this the turn is not uniform: the signs are the algorithm's own.
    turned = turned * upper.diagonal(dim1=-2, dim2=-1).sign()[:, None, :]
    # Each is as long as a normal vector is, drawn by itself.
    lengths = normal.norm(dim=-1, keepdim=True)
    return turned.mT.reshape(-1, d)[:n_features] * lengths


def performer_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    n_features: int = 256,
    seed: int = 0,
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
        The output, (..., n_q, d_v). A query that may see no key gets zeros.
        It can be differentiated once, not twice.

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
    check_shapes(q, k, v)
    why = "it sums up the keys before it looks at a query"
    refuse("performer_attention", why, mask, bias)
    omega = random_directions(
        n_features, q.shape[-1], seed=seed, orthogonal=orthogonal
    )
    [like] = widen(q[..., :0])
    omega = omega.to(like) / q.shape[-1] ** 0.25
    batch = batch_shape(q, k, v)
    flat = (
        x.expand(*batch, -1, -1).reshape(math.prod(batch), *x.shape[-2:])
        for x in (q, k, v)
    )
    output = Performer.apply(*flat, omega, causal)
    return output.reshape(*batch, *output.shape[-2:])


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
    @torch.autocast("cpu", enabled=False)
    @torch.autocast("cuda", enabled=False)
    def forward(ctx: Any, q, k, v, omega, causal):
        """Read the chunks in order; answer from memory and from the chunk."""
        output = q.new_empty(*q.shape[:-1], v.shape[-1])
        level, inverse = widen(*q.new_zeros(2, *q.shape[:-1], 1))
        memory = empty_memory(k, v, omega, -1)
        for rows, keys in chunks(q.shape[-2], k.shape[-2], causal):
            chunk = read(q, k, v, omega, rows, keys, memory.level)
            shrink = (memory.level - chunk.level).exp_()
            summed = chunk.f_q @ memory.pairs * shrink
            total = chunk.f_q @ memory.total.mT * shrink
            among = chunk.weights()
            total += among.sum(dim=-1, keepdim=True)
            # Where nothing is seen, or as good as nothing, there is nothing.
            divided = total.reciprocal().masked_fill_(total < LEAST, 0.0)
            summed = torch.baddbmm(summed, among, chunk.values)
            output[:, rows] = summed.mul_(divided)
            level[:, rows], inverse[:, rows] = chunk.level, divided
            memory = chunk.remember(memory)
        ctx.save_for_backward(q, k, v, omega, output, level, inverse, *memory)
        ctx.causal = causal
        return output

    @staticmethod
    @torch.autocast("cpu", enabled=False)
    @torch.autocast("cuda", enabled=False)
    def backward(ctx: Any, grad_output):
        """Read the chunks backwards; causal, before that in order again."""
        check_once("performer_attention")
        q, k, v, omega, output, level, inverse, *memory = ctx.saved_tensors
        grad_q, grad_k, grad_v = (torch.empty_like(x) for x in (q, k, v))
        order = list(chunks(q.shape[-2], k.shape[-2], ctx.causal))

        def again(rows: slice, keys: slice) -> Way:
            chunk = read(q, k, v, omega, rows, keys, None, level)
            grad = grad_output[:, rows] * inverse[:, rows]
            dots = (grad * output[:, rows]).sum(dim=-1, keepdim=True)
            return Way(chunk, grad, -dots)

        start = empty_memory(k, v, omega, -1)
        before = start if ctx.causal else Memory(*memory)
        for rows, keys in order if ctx.causal else []:
            way = again(rows, keys)
            grad_q[:, rows] = way.to_queries(before) @ omega
            before = way.chunk.remember(before)
        after = empty_memory(k, v, omega, 1)
        for rows, keys in reversed(order):
            way = again(rows, keys)
            if not ctx.causal:  # every key came before every query
                grad_q[:, rows] = way.to_queries(before) @ omega
            grad_logs, grad_v[:, keys] = way.to_keys(after)
            lengths = grad_logs.sum(dim=-1, keepdim=True) * k[:, keys]
            grad_k[:, keys] = grad_logs @ omega - lengths / q.shape[-1] ** 0.5
            after = way.remember(after)
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


class Way(NamedTuple):
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


def chunks(n_q: int, n_k: int, causal: bool) -> Iterator[tuple[slice, slice]]:
    """Which queries and which keys to read at each step, in order.

    Causal, they go side by side, after what one has more than the other.
    Otherwise all keys are read before the first query.
    """
    nothing = slice(0, 0)
    extra_q, extra_k = (n_q, n_k) if not causal else (n_q - n_k, n_k - n_q)
    size = CHUNK if causal else 4 * CHUNK  # no square within the chunk to make
    yield from ((nothing, keys) for keys in blocks(0, extra_k, size))
    yield from ((rows, nothing) for rows in blocks(0, extra_q, size))
    for rows in blocks(max(0, extra_q), n_q, size):  # none if not causal
        yield rows, slice(rows.start + extra_k, rows.stop + extra_k)


def blocks(start: int, stop: int, size: int) -> Iterator[slice]:
    """From start to stop in steps of ``size``; the last may be shorter."""
    for begin in range(start, stop, size):
        yield slice(begin, min(begin + size, stop))


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
    pairs = omega.new_zeros(len(k), len(omega), v.shape[-1])
    total = omega.new_zeros(len(k), 1, len(omega))
    level = sign * torch.finfo(omega.dtype).max / 4  # as inf - inf is NaN
    return Memory(pairs, total, omega.new_full((len(k), 1, 1), level))
