"""Linear attention: replace exp(q·k) by φ(q)·φ(k), and reorder the product.

Computes:  another kernel, not softmax: weights φ(q)φ(k)ᵀ, rows normalised
Time:      O(n d d_v)           Memory: O(n d), and one memory of d x d_v
Supports:  causal
Reference: Katharopoulos et al. (2020), sections 3.2 to 3.4
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from selfattn.checks import (
    check_call,
    check_once,
    check_places,
    check_shapes,
    check_tensor,
)
from selfattn.dot_product import (
    Bias,
    Keys,
    Mask,
    Output,
    Queries,
    Table,
    Values,
    refuse,
    widen,
)
from selfattn.feature_chunks import (
    Reader,
    features,
    memorise,
    recalled,
    recalled_exactly,
    remembered,
    sound_pairs,
    unfelt_features,
    wide_features,
)
from selfattn.hidden import match
from selfattn.masks import causal_mask
from selfattn.pieces import LOG2_E, add_product, divisor, without_autocast
from selfattn.signatures import checked
from selfattn.spoilt import is_spoilt, projected
from selfattn.underflow import is_coarse, is_faint

CHUNK = 64  # tokens at a time: about d, where both ways cost the same
FeatureMap = Callable[[Tensor], Tensor]


@checked
def elu_plus_one(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """φ(x) = elu(x) + 1: x + 1 above zero and exp(x) below.

    Written so that it stays positive: ``F.elu(x) + 1`` rounds to zero from
    x = -17 on in float32, and then there may be nothing to divide by.

    Reference: Katharopoulos et al. (2020), equation 7.

    >>> elu_plus_one(torch.tensor([-20.0, 0.0, 2.0]))
    tensor([2.0612e-09, 1.0000e+00, 3.0000e+00])
    """
    wide = x.float() if x.element_size() < 4 else x
    return (wide.clamp(max=0).mul_(LOG2_E).exp2_() + wide.relu()).to(x.dtype)


@checked
def linear_weights(
    q: Queries,
    k: Keys,
    *,
    causal: bool = False,
    feature_map: FeatureMap = elu_plus_one,
) -> Table:
    """The weights that linear attention stands for, and never makes.

    Softmax compares by exp(qᵢ·kⱼ/√d); here it is φ(qᵢ)·φ(kⱼ), for all pairs
    at once. `linear_attention` is these weights times the values, in another
    order: φ(q) (φ(k)ᵀ v) instead of (φ(q) φ(k)ᵀ) v, so that no table is made.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        causal: hide from each query the keys after it; the last query sits
            on the last key.
        feature_map: φ, from (..., n, d) to (..., n, any number).

    Returns:
        Weights, (..., n_q, n_k), whose rows sum to one; those of a query that
        may see no key are zeros.

    Reference: Katharopoulos et al. (2020), equation 4.

    >>> q, k = torch.tensor([[0.0]]), torch.tensor([[0.0], [2.0]])
    >>> linear_weights(q, k)  # the features are 1, and 1 and 3
    tensor([[0.2500, 0.7500]])
    """
    check_shapes(q, k, k)
    ours = feature_map is elu_plus_one
    f_q, f_k = wide_features(feature_map, q, k, ours)
    dtype = f_q.dtype
    if not (ours and is_faint(q, k)):
        weights = shares(f_q, f_k, causal)
        if not is_coarse(weights, causal, f_q, f_k):
            return weights
    if ours:
        f_q, f_k = features(feature_map, q.double(), k.double())
    return shares(f_q.double(), f_k.double(), causal).to(dtype)


def shares(f_q: Tensor, f_k: Tensor, causal: bool) -> Tensor:
    """What share of the products of a query's features each key's has."""
    [similarity] = widen(match(f_q, f_k, in_type))
    if causal:
        past = causal_mask(*similarity.shape[-2:], device=f_q.device)
        similarity = similarity.masked_fill(~past, 0.0)
    # A row that is infinite would be NaN on the way back of others, too.
    return projected(of_each_row, similarity, draws=False)


def of_each_row(similarity: Tensor) -> Tensor:
    """Its numbers as shares of their sum."""
    return similarity / divisor(similarity.sum(dim=-1, keepdim=True))


def in_type(f_q: Tensor, f_k: Tensor) -> Tensor:
    """The products of features, which autocast makes in half precision."""
    return f_q @ f_k.mT


def linear_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    feature_map: FeatureMap = elu_plus_one,
) -> Output:
    """Average the values by φ(qᵢ)·φ(kⱼ), at a cost that is linear in n.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
        mask: refused: keys are summed up before any query is looked at.
        bias: refused, likewise.
        causal: hide from each query the keys after it; the last query sits
            on the last key.
        feature_map: φ, from (..., n, d) to (..., n, any number); what it
            gives should not be negative. With ``causal``, each token's
            features must depend on that token alone.

    Returns:
        The output, (..., n_q, d_v). A query that may see no key gets zeros,
        and so does one whose weights are as good as zero: in float64, which
        computes what is too small or too large for float32 (on a GPU, in
        float32), their sum is under 1e-292 (under 1e-31). It can be
        differentiated once, not twice.

    Raises:
        ValueError: if shapes do not fit together, or a mask or bias is given.

    Reference: Katharopoulos et al. (2020), equations 4 to 9.

    >>> q, k, v = torch.randn(3, 100, 8)
    >>> expected = linear_weights(q, k) @ v
    >>> torch.allclose(linear_attention(q, k, v), expected, atol=1e-6)
    True
    """
    check_call("linear_attention", q, k, v, causal)
    why = "it sums up the keys before it looks at a query"
    refuse("linear_attention", why, mask, bias)
    ours, dtype = feature_map is elu_plus_one, q.dtype
    if not ours:  # it may have parameters to train, so autograd must see it
        q, k = features(feature_map, q, k)
    if not (ours and is_faint(q, k)):
        output = by_sums(q, k, v, causal, ours)
        if not is_coarse(output, causal, q, k, v):
            return output.to(dtype)
    wide = q.double(), k.double(), v.double()
    return by_sums(*wide, causal, ours).to(dtype)


def by_sums(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, ours: bool
) -> Tensor:
    """The output; q and k are features already, unless those are ours."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return LinearAttention.apply(q, k, v, causal, ours)

    return unfelt_features(attend, q, k, v, ours)


class Memory(NamedTuple):
    """All that linear attention keeps of the tokens it has read."""

    pairs: Float[Tensor, "... features d_v"]  # S = Σ φ(k) vᵀ in the paper
    total: Float[Tensor, "... 1 features"]  # Z = Σ φ(k)


@checked
def linear_attention_step(
    q: Float[Tensor, "*batch d"],
    k: Float[Tensor, "*batch d"],
    v: Float[Tensor, "*batch d_v"],
    memory: Memory | None = None,
    *,
    feature_map: FeatureMap = elu_plus_one,
) -> tuple[Float[Tensor, "*batch d_v"], Memory]:
    """Causal linear attention as a recurrent network: one token, one step.

    Args:
        q: the token's query, (..., d).
        k: its key, (..., d).
        v: its value, (..., d_v).
        memory: what was returned for the token before; None for the first.
        feature_map: φ.

    Returns:
        The token's output, (..., d_v), and the memory for the next token,
        whose size does not grow; it is kept in float32 at least, for in half
        precision a sum of thousands no longer takes up the next. The memory
        that was passed in is unchanged.

        Weights that are too small or too large for float32 are computed in
        float64 (not on a GPU). But the memory holds features, and their
        products with values, from 1e-38 to 3e38 only: those of a key below
        -87 are lost, while `linear_attention` has them. Gradients are lost
        where values over features are larger.

    Reference: Katharopoulos et al. (2020), section 3.4, equations 16 to 20.

    >>> q, k, v = torch.randn(3, 5, 8)
    >>> memory, outputs = None, []
    >>> for token in zip(q, k, v):
    ...     output, memory = linear_attention_step(*token, memory)
    ...     outputs.append(output)
    >>> at_once = linear_attention(q, k, v, causal=True)
    >>> torch.allclose(torch.stack(outputs), at_once, atol=1e-6)
    True
    """
    named = () if memory is None else memory._asdict().items()
    before = {f"memory.{name}": kept for name, kept in named}
    for name, kept in before.items():
        check_tensor(name, kept)
    check_places(q=q, k=k, v=v, **before)
    check_shapes(*(x[..., None, :] for x in (q, k, v)))  # of one token each
    dtype, ours = v.dtype, feature_map is elu_plus_one
    asked, key, v = widen(*wide_features(feature_map, q, k, ours), v)
    now = Memory(*remembered(memory, key, v))
    output, weight = recalled(asked[..., None, :], *now)
    if is_spoilt(output) or is_spoilt(weight):  # which is infinite for none
        if ours:
            asked = feature_map(q.double())
        now = Memory(*remembered(memory, key, v, sound_pairs))
        output = recalled_exactly(asked[..., None, :], *now)
    return output.to(dtype), now


class LinearAttention(torch.autograd.Function):
    """Both passes by hand, on (batch, n, d), keeping no memory but one.

    Autograd would keep the memory of every chunk. On the way back, as in the
    paper's algorithm 1, the gradient of a query needs the memory of the keys
    before it: causal, they are read once more. Those of a key and its value
    need a memory of the queries after it: read backwards.
    Autocast is off in both: it would round what many tokens add up to.
    """

    @staticmethod
    @without_autocast
    def forward(ctx: Any, q, k, v, causal, ours):
        """Equation 12, chunk by chunk: φ(q) S over φ(q) Z."""
        # In float32 at least: what two terms of the way back leave of each
        # other may be less than half precision rounds away.
        empty = (q.new_empty(*q.shape[:-1], d) for d in (v.shape[-1], 1))
        output, divisors = widen(*empty)
        memory = empty_memory(k, v)
        reader = Reader((q, k, v), ours, CHUNK, causal)
        for rows, keys in reader.order:
            f_q, f_k, values = reader.read(rows, keys)
            if f_q.shape[1]:
                summed, weight = reader.ask(memory, f_q)
                if f_k.shape[1]:  # the weights within the chunk
                    among = (f_q @ f_k.mT).tril_()
                    add_product(summed, among, values)
                    weight += among.sum(dim=-1, keepdim=True)
                divisors[:, rows] = weight = divisor(weight)
                torch.div(summed, weight, out=output[:, rows])
            memorise(memory, f_k, values)
        ctx.save_for_backward(q, k, v, output, divisors, *memory)
        ctx.causal, ctx.ours = causal, ours
        return output.to(q.dtype)

    @staticmethod
    @without_autocast
    def backward(ctx: Any, grad_output):
        """Equations 13 to 15: for queries in order, for keys backwards."""
        check_once("linear_attention", grad_output)
        kept, how = (*ctx.saved_tensors, grad_output), (ctx.causal, ctx.ours)
        grads = passed_back(kept, *how)
        if any(map(is_spoilt, grads)):
            # Over weights that are small, what is divided by them can be too
            # large for the type, before it is multiplied with them again.
            exact = passed_back([x.double() for x in kept], *how)
            # Of what nobody asks for, nothing: not 0 · ∞, if it has no sum.
            unasked = (grad_output == 0).all(dim=-1, keepdim=True)
            exact[0].masked_fill_(unasked, 0)
            both = zip(grads, exact, strict=True)
            grads = [g.where(g.isfinite(), x.to(g.dtype)) for g, x in both]
        return *grads, None, None


def passed_back(kept: Any, causal: bool, ours: bool) -> list[Tensor]:
    """The gradients of queries, keys and values, of what was kept of them."""
    q, k, v, output, divisors, pairs, total, grad_output = kept
    grad_q, grad_k, grad_v = (torch.empty_like(x) for x in (q, k, v))
    reader = Reader((q, k, v), ours, CHUNK, causal)

    def read_again(rows: slice, keys: slice) -> Chunk:
        features = reader.read(rows, keys)
        grad = grad_output[:, rows] / divisors[:, rows]
        grad_weight = -(grad * output[:, rows]).sum(dim=-1, keepdim=True)
        return Chunk(*features, grad, grad_weight, ours)

    before = empty_memory(k, v) if causal else Memory(pairs, total)
    for rows, keys in reader.order if causal else []:
        chunk = read_again(rows, keys)
        grad_q[:, rows] = chunk.to_queries(before)
        memorise(before, chunk.f_k, chunk.values)
    after = empty_memory(k, v)
    for rows, keys in reversed(reader.order):
        chunk = read_again(rows, keys)
        if not causal:  # every key came before every query
            grad_q[:, rows] = chunk.to_queries(before)
        grad_k[:, keys], grad_v[:, keys] = chunk.to_keys(after)
        memorise(after, chunk.f_q, chunk.grad, chunk.grad_weight)
    return [grad_q, grad_k, grad_v]


class Chunk(NamedTuple):
    """Some queries and some keys on the way back, and what they pass back."""

    f_q: Tensor
    f_k: Tensor
    values: Tensor
    grad: Tensor  # of the sums of weighted values
    grad_weight: Tensor  # of the sums of weights
    ours: bool

    def grad_among(self) -> Tensor:
        """Of the weights within the chunk."""
        return (self.grad @ self.values.mT).add_(self.grad_weight).tril_()

    def to_queries(self, before: Memory) -> Tensor:
        """The gradient of the queries, given the memory they asked."""
        grad_f = self.grad @ before.pairs.mT
        grad_f.addcmul_(self.grad_weight, before.total)
        grad_among = self.grad_among()
        if grad_among.numel():
            add_product(grad_f, grad_among, self.f_k)
        return feature_map_backward(self.f_q, grad_f, self.ours)

    def to_keys(self, after: Memory) -> tuple[Tensor, Tensor]:
        """Of the keys and values, given the memory of those that asked."""
        grad_f = (self.values @ after.pairs.mT).add_(after.total)
        grad_values = self.f_k @ after.pairs
        grad_among = self.grad_among()
        if grad_among.numel():
            add_product(grad_f, grad_among.mT, self.f_q)
            among = (self.f_q @ self.f_k.mT).tril_()
            add_product(grad_values, among.mT, self.grad)
        return feature_map_backward(self.f_k, grad_f, self.ours), grad_values


def feature_map_backward(features: Tensor, grad: Tensor, ours: bool) -> Tensor:
    """Back through the feature map, in place: elu + 1 has slope min(φ, 1)."""
    return grad.mul_(features.clamp(max=1)) if ours else grad


def empty_memory(k: Tensor, v: Tensor) -> Memory:
    """The memory of no tokens."""
    batch, features, d_v = k.shape[0], k.shape[-1], v.shape[-1]
    pairs = k.new_zeros(batch, features, d_v)
    return Memory(*widen(pairs, k.new_zeros(batch, 1, features)))
