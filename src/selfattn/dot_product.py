"""Scaled dot-product attention, once slowly and once fast.

Every attention mechanism of this book is a callable with one signature,

    attend(q, k, v, *, mask=None, bias=None, causal=False) -> output

on queries (..., n_q, d), keys (..., n_k, d) and values (..., n_k, d_v). A
plain function will do; a mechanism with parameters is an ``nn.Module``.
`attention` is the definition; every other mechanism is tested against it.
"""

import math
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from selfattn.checks import (
    check_dropout,
    check_flag,
    check_floats,
    check_number,
    check_scores,
    check_shapes,
)
from selfattn.hidden import all_seen, average, match, unfelt
from selfattn.infinite import level
from selfattn.kernels import by_pytorch, taken_as
from selfattn.masks import causal_mask
from selfattn.spoilt import can_look, drawing_once, is_spoilt
from selfattn.transforms import is_square

FLOAT32 = torch.finfo(torch.float32)
TINY, LARGEST = FLOAT32.tiny, FLOAT32.max
Queries = Float[Tensor, "*#batch n_q d"]
Keys = Float[Tensor, "*#batch n_k d"]
Values = Float[Tensor, "*#batch n_k d_v"]
Table = Float[Tensor, "... n_q n_k"]
Output = Float[Tensor, "... n_q d_v"]
Mask = Bool[Tensor, "..."] | None
Bias = Float[Tensor, "..."] | None


@runtime_checkable
class Attend(Protocol):
    """What every mechanism of this book is: something you call like this."""

    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Return the attention output, (..., n_q, d_v).

        It is kept for the way back: who wants to write into it, and to have
        gradients all the same, writes into a copy.
        """
        ...


class Steps(NamedTuple):
    """Every intermediate of one attention, in the order of computation."""

    scores: Tensor  # q kᵀ: how well query i matches key j
    scaled: Tensor  # divided by √d, so that the variance stays near one
    biased: Tensor  # plus the bias, if any
    weights: Tensor  # softmax over the keys a query may see: rows sum to one
    output: Tensor  # the weighted average of the values


def attention_steps(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> Steps:
    """Attention with nothing hidden: softmax(QKᵀ / √d) V, step by step.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
        mask: True where a query may attend; broadcasts to (..., n_q, n_k).
        bias: added to the scaled scores; broadcasts to (..., n_q, n_k).
        causal: hide from each query the keys after it; the last query sits
            on the last key: see the drawings of `causal_mask`.
        scale: what the scores are multiplied by; 1/√d when None.
        dropout_p: the share of weights to drop on the way to the output. The
            ``weights`` that are returned are those before dropping.

    Returns:
        The `Steps`: scores, scaled, biased and weights, (..., n_q, n_k), and
        the output, (..., n_q, d_v). A query that may see no key gets zeros.
        Half-precision inputs are computed in float32, and only the output
        is rounded back.

    Raises:
        ValueError: if shapes or types do not fit together, or if dropout_p
            is no probability.

    Reference: Vaswani et al. (2017), section 3.2.1, equation 1.

    >>> q = torch.tensor([[1.0, 0.0]])
    >>> k = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    >>> v = torch.tensor([[2.0], [4.0]])
    >>> attention_steps(q, k, v).weights  # both keys match alike
    tensor([[0.5000, 0.5000]])
    >>> attention_steps(q, k, v).output
    tensor([[3.]])
    """
    check_shapes(q, k, v, mask, bias)
    check_options(causal, scale, dropout_p)
    mask = with_causal(mask, causal, q, k)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    dtype = q.dtype
    q, k, v, bias = widen(q, k, v, bias)

    scores = match(q, k)
    scaled = scores * scale
    biased = with_bias(scaled, bias)
    weights = masked_softmax(biased, mask)
    output = average(F.dropout(weights, dropout_p), v)
    return Steps(scores, scaled, biased, weights, output.to(dtype))


def attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> Output:
    """The output of `attention_steps`: the definition all others must match.

    Shapes, arguments and errors are those of `attention_steps`.

    Reference: Vaswani et al. (2017), section 3.2.1, equation 1.
    """
    return attention_steps(
        q,
        k,
        v,
        mask=mask,
        bias=bias,
        causal=causal,
        scale=scale,
        dropout_p=dropout_p,
    ).output


def attention_weights(
    q: Queries,
    k: Keys,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    scale: float | None = None,
) -> Table:
    """The weights alone, (..., n_q, n_k): who looks at whom, how much.

    Shapes, arguments and errors are those of `attention_steps`.

    Reference: Vaswani et al. (2017), section 3.2.1, equation 1.
    """
    check_floats("k", k)
    no_values = k[..., :0]  # the weights do not depend on the values
    return attention_steps(
        q, k, no_values, mask=mask, bias=bias, causal=causal, scale=scale
    ).weights


def fused_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> Output:
    """The same function on PyTorch's fused kernels: same output, no steps.

    Shapes, arguments and errors are those of `attention_steps`. Its gradient
    has no gradient on most kernels, except by `torch.func`. Its weights are
    off by up to the size of the scores times 2⁻²³ in float32, and so are both
    output and gradient; but where a gradient is asked for on a processor, and
    that may be more than 1/64, it takes the steps, and their table of n_q ×
    n_k. So it does where NaN or infinity is among keys or values, though it
    be hidden.

    Reference: Dao et al. (2022), through
    `torch.nn.functional.scaled_dot_product_attention`.
    """
    check_shapes(q, k, v, mask, bias)
    check_options(causal, scale, dropout_p)
    # On a CPU, its kernel scales the -inf of what is hidden, too: by 0 to NaN
    # and by less than 0 to inf.
    hides = causal and (scale is None or scale > TINY)
    past_alone = hides and mask is None and bias is None and is_square(q, k)
    table = None
    if not past_alone:
        # PyTorch's is_causal puts the first query on the first key; ours the
        # last on the last. Where they differ, the mask itself is handed in.
        table = mask_and_bias(with_causal(mask, causal, q, k), bias, q.dtype)
    how: Any = {"scale": scale, "dropout_p": dropout_p}
    attend = partial(by_pytorch, attn_mask=table, is_causal=past_alone, **how)
    exactly = partial(attention, mask=mask, bias=bias, causal=causal, **how)
    if dropout_p:
        attend, exactly = drawing_once(q, attend, exactly)
    told = partial(besides, attend, exactly, table, dropout_p)
    if bias is not None and 0 in (q.numel(), k.numel(), v.numel()):
        # Of what is empty, its kernel gives a bias no gradient of zeros.
        return told()["exactly"](q, k, v).to(taken_as(q))
    if table is None and not causal and k.shape[-2]:  # all see all
        return all_seen(attend, q, k, v, told)
    return unfelt(attend, q, k, v, **told())


def by_definition(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None
) -> Tensor:
    """`attention`, called as PyTorch's kernels are: minus infinity hides
    whatever the score is.
    """
    return attention(q, k, v, bias=attn_mask)


def besides(
    attend: partial, exactly: partial, table: Tensor | None, dropout_p: float
) -> Any:
    """What there is to know of an attention besides: who sees no key, what
    is hidden by definition; and the same without dropout, if it drops any.
    """
    idle = None if table is None else partial(sees_nothing, table)
    told: dict[str, Any] = {"idle": idle, "exactly": exactly}
    if dropout_p:
        told["surely"] = partial(attend, dropout_p=0.0)
    if table is not None and table.dtype != torch.bool:
        told["level"] = partial(at_level, attend, table)
    return told


def at_level(
    attend: partial, table: Tensor, q: Tensor, k: Tensor, v: Tensor
) -> Output:
    """The same without what is NaN or infinity in what is added."""
    wide = torch.promote_types(table.dtype, q.dtype)  # as q may be now
    return attend(q, k, v, attn_mask=level(table).to(wide))


def sees_nothing(table: Tensor) -> Tensor:
    """Which queries may see no key, by PyTorch's table, (..., n_q, 1)."""
    hidden = ~table if table.dtype == torch.bool else table == -math.inf
    return hidden.all(dim=-1, keepdim=True)


def mask_and_bias(mask: Mask, bias: Bias, dtype: torch.dtype) -> Tensor | None:
    """The one table that PyTorch takes: who may attend, or what to add."""
    if bias is None:
        table = mask
    else:
        if bias.dtype != dtype:  # else PyTorch takes none but float32
            wide = torch.promote_types(dtype, torch.float32)
            bias = still_finite(bias, wide)
        table = bias if mask is None else bias.masked_fill(~mask, -math.inf)
    return None if table is None else torch.atleast_2d(table)


def widen(q: Tensor, *others: Tensor | None) -> list[Any]:
    """The tensors in the type of q, but with no fewer digits than float32.

    In float16 a score near 100 is off by up to 0.03, so its exponential is
    off by three per cent; in bfloat16 by a quarter.
    """
    dtype = torch.promote_types(q.dtype, torch.float32)
    return [x if x is None else still_finite(x, dtype) for x in (q, *others)]


def still_finite(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The numbers in another type; those too large for it are its largest.

    Else a bias of float64 would be infinite among numbers of float32, which
    hides a key, or all the others.
    """
    if x.dtype is dtype:
        return x
    most = torch.finfo(dtype).max
    if torch.finfo(x.dtype).max <= most:
        return x.to(dtype)
    # Its gradient is that of a sum all the same, not zero as that of `clamp`.
    kept = x.detach().clamp(-most, most) + (x - x.detach())
    return torch.where(x.isinf(), x, kept).to(dtype)


def masked_softmax(scores: Table, mask: Mask = None) -> Table:
    """Softmax over the keys that the mask allows.

    Args:
        scores: (..., n_q, n_k).
        mask: True where a query may attend; broadcasts to the scores.

    Returns:
        Weights, (..., n_q, n_k), whose rows sum to one; but a query that may
        see no key gets weights of zero, not NaN: there is nothing to average,
        and one padded row must not poison a batch.

    Raises:
        ValueError: if scores are no floating-point numbers, or if the mask
            does not say yes or no to each of them.

    >>> masked_softmax(torch.zeros(2, 2), torch.tensor([[True], [False]]))
    tensor([[0.5000, 0.5000],
            [0.0000, 0.0000]])
    """
    check_scores(scores, mask)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    # Softmax of a row of -inf is NaN, forwards and backwards. So an empty row
    # goes through it as zeros and is wiped out afterwards.
    empty = (scores == -math.inf).all(dim=-1, keepdim=True)
    weights = scores.masked_fill(empty, 0.0).softmax(dim=-1)
    weights = weights.masked_fill(empty, 0.0)
    # A row with a score of NaN or infinity is all NaN, and would be so on the
    # way back of others, too, times zero.
    looked_at = weights.requires_grad and can_look(weights)
    if not (looked_at and is_spoilt(weights[..., :1])):
        return weights
    lost = weights[..., :1].isnan()
    known = scores.masked_fill(empty | lost, 0.0).softmax(dim=-1)
    return known.masked_fill(empty, 0.0).masked_fill(lost, math.nan)


def with_bias(scores: Table, bias: Bias) -> Table:
    """Add the bias, if any; where it is minus infinity, the score is, too.

    That hides a key as a mask does, even one whose score is NaN.
    """
    if bias is None:
        return scores
    return (scores + bias).masked_fill(bias == -math.inf, -math.inf)


def with_causal(mask: Mask, causal: bool, q: Tensor, k: Tensor) -> Mask:
    """Add the causal mask to ``mask``, when ``causal`` asks for it."""
    if not causal:
        return mask
    past = causal_mask(q.shape[-2], k.shape[-2], device=q.device)
    return past if mask is None else mask & past


def check_options(causal: bool, scale: float | None, dropout_p: float) -> None:
    """Raise unless these are yes or no, a number, and a probability."""
    check_flag("causal", causal)
    check_dropout(dropout_p)
    if scale is not None:
        check_scale(scale)


def check_scale(scale: float) -> None:
    """Raise unless this is a number that float32 has."""
    check_number("scale", scale)
    if abs(scale) > LARGEST:
        raise ValueError(
            "scale must be a number that float32 has, at most "
            f"{LARGEST:.4g} from 0, but it is {scale}"
        )


def refuse(
    name: str, why: str, mask: Tensor | None, bias: Tensor | None
) -> None:
    """Raise if a mechanism is given a mask or bias it cannot honour."""
    for what, value in (("mask", mask), ("bias", bias)):
        if value is not None:
            raise ValueError(f"{name} cannot use a {what}: {why}")
