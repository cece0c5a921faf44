"""Infinite: what values that are no numbers make of those who see them.

Summed up, they are felt where nobody sees them: 0 · ∞ is NaN; and so is what
two pieces bring of one infinity, if one of them hides it. Here they are left
out of the sum, and who has a weight for them is asked separately.
"""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn.checks import is_autocast
from selfattn.spoilt import can_look, largest

# A value that shows who sees it, half as large as float16 has them: times a
# small weight, it is not yet zero there.
MARK = 2.0**15


def with_infinite(weigh: Callable[[Tensor], Tensor], v: Tensor) -> Tensor:
    """What is made of values, each feature of which may be infinite or NaN.

    Args:
        weigh: sums up values by weights that are not negative,
            (..., n_k, any number) -> (..., n_q, as many).
        v: values, (..., n_k, d_v).

    Returns:
        The sums, (..., n_q, d_v). A query has infinity for a feature if it
        has a weight for a key that has; NaN, if for such a one, or for
        infinities of both signs.

    >>> import torch
    >>> weights = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    >>> v = torch.tensor([[torch.inf], [2.0], [-torch.inf]])
    >>> with_infinite(weights.matmul, v), weights @ v
    (tensor([[inf],
            [-inf]]), tensor([[nan],
            [nan]]))
    """
    output = weigh(v.masked_fill(~v.isfinite(), 0))
    if v.isfinite().all():
        return output
    ups, downs, lost = (
        weigh(MARK * kind.to(v.dtype)) != 0
        for kind in (v == math.inf, v == -math.inf, v.isnan())
    )
    output = output.masked_fill(ups, math.inf).masked_fill(downs, -math.inf)
    return output.masked_fill(lost | (ups & downs), math.nan)


def level(bias: Tensor) -> Tensor:
    """A bias without NaN and infinity; minus infinity hides, and stays.

    >>> import torch
    >>> level(torch.tensor([torch.inf, -torch.inf, torch.nan, 2.0]))
    tensor([0., -inf, 0., 2.])
    """
    return bias.masked_fill(bias.isnan() | (bias == math.inf), 0.0)


def all_felt(
    attend: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor
) -> Any:
    """The same for a mechanism, which may return others behind its output."""
    result = attend(q, k, v.masked_fill(~v.isfinite(), 0))
    if not isinstance(result, tuple):
        return with_infinite(lambda x: attend(q, k, x), v)
    return with_infinite(lambda x: attend(q, k, x)[0], v), *result[1:]


def largest_number(x: Tensor) -> float:
    """How far from zero any is that is a number; 0 if there is none.

    >>> largest_number(torch.tensor([torch.nan, -2.0, torch.inf]))
    2.0
    """
    if not x.numel():
        return 0.0
    most = largest(x)
    if math.isfinite(most):  # as a rule, and no copy is made
        return most
    return largest(x.nan_to_num(0, 0, 0))


def heaviest(q: Tensor, k: Tensor) -> float:
    """How large a weight is at most: a product of features.

    >>> import torch
    >>> heaviest(torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, torch.inf]]))
    24.0
    """
    most_q, most_k = (1 + largest_number(x) for x in (q, k))
    width = max(1, q.shape[-1])
    return width * most_q * most_k  # elu + 1 is at most |x| + 1


def smaller(v: Tensor, heaviest: float = 1.0) -> float:
    """By what to multiply values, a power of two, so that no sum of them
    overflows that is made before it is divided by the weights, each of which
    is at most the heaviest; 1 if none does.

    >>> smaller(torch.tensor([[3e38], [1.0]])), smaller(torch.ones(2, 1))
    (0.125, 1.0)
    """
    if not v.numel():
        return 1.0
    wide = torch.promote_types(v.dtype, torch.float32)  # of all sums
    most = torch.finfo(wide).max
    most_weight = min(v.shape[-2] * heaviest, most**0.95)  # whose sum is one
    most /= 4 * most_weight
    if largest_number(v) <= most:
        return 1.0
    return 2.0 ** -(2 + math.ceil(math.log2(most_weight)))


def on_smaller(
    attend: Callable[..., Any],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    heaviest: float = 1.0,
) -> Any:
    """Attend to values made smaller, if need be, and make the output larger;
    it may come before other results. Where values of another sequence are
    large, small ones keep their digits.
    """
    least = smaller(v, heaviest)
    if least == 1:
        return attend(q, k, v)
    wide = torch.promote_types(v.dtype, torch.float32)
    each = v.detach().nan_to_num(0, 0, 0).abs().amax((-2, -1), keepdim=True)
    large = each > least * torch.finfo(wide).max
    by = torch.ones_like(each).masked_fill(large, least)
    result = attend(q, k, v * by)
    if isinstance(result, tuple):
        return (result[0] / by, *result[1:])
    return result / by


def furthest(k: Tensor) -> float:
    """How far away a key can be whose products are still numbers."""
    dtype = k.dtype
    if is_autocast(k) and dtype != torch.float64:
        dtype = torch.get_autocast_dtype(k.device.type)
    most = torch.finfo(dtype).max
    return most if dtype == torch.float16 else most**0.5


def alone(
    attend: Callable[..., Any],
    level: Callable[..., Any],
    q: Tensor,
    k: Tensor,
    v: Tensor,
) -> tuple[Tensor, Any]:
    """Which queries are spoilt by nothing that is, as by a score that
    overflows; and the result, on whose way back they are not.

    Their weights are NaN; and on the way back of all others, times zero. Of
    sums over keys that overflow by themselves, nothing is left of all those
    keys, nor of who asks for them.
    """
    result = attend(q, k, v)
    over = ~first(result).isfinite().all(dim=-1, keepdim=True)
    if not (first(result).requires_grad and over.any()):
        return over, result
    result = level(torch.where(over, 0.0, q), k, v)
    lost = ~first(result).isfinite().all(dim=-1, keepdim=True)
    if not lost.any():
        return over, result
    lost = lost.any(dim=-2, keepdim=True)
    over = over | lost
    k, v = (torch.where(lost, 0.0, x) for x in (k, v))
    return over, level(torch.where(over, 0.0, q), k, v)


def weightless(
    attend: Callable[..., Any],
    given: tuple[Tensor, Tensor, Tensor],
    felt: Tensor,
    result: Any,
    clean: Any,
) -> tuple[Tensor, Any]:
    """What is felt, and what is clean, if an infinite key that is seen weighs
    nothing, by its score of minus infinity: the others are averaged.

    One that is as far away as can be, and yet a number, has no weight either,
    and passes nothing back. Where it has, the result is another. In float16
    nothing is that far from a small query: there it is done in float32.
    """
    if not given[1].isinf().any():
        return felt, clean
    half = given[0].dtype == torch.float16
    q, k, v = (x.float() if half else x for x in given)
    spoilt, bad = (~x.isfinite().all(-1, keepdim=True) for x in (k, v))
    most = furthest(k)
    far = k.detach().nan_to_num(0, most, -most)
    k, v = torch.where(spoilt, far, k), v.masked_fill(bad, 0)
    over, near = alone(attend, attend, q, k, v)
    with torch.no_grad():  # each query's own; and its terms may cancel out
        size = first(attend(q, k, v.abs())).abs()
    found, wanted = (first(x).detach() for x in (near, result))
    room = max(torch.finfo(x.dtype).eps for x in (found, wanted)) ** 0.5
    same = (found - wanted).abs() <= room * size  # not of NaN
    same = felt & ~over & same.all(dim=-1, keepdim=True)
    return felt & ~same, joined(same, as_numbers(result, near), clean)


def as_numbers(result: Any, near: Any) -> Any:
    """The numbers of a result, which pass back what those near it do."""
    if isinstance(near, tuple):
        return tuple(map(as_numbers, result, near))
    return result.to(near.dtype) + (near - near.detach())


def first(result: Any) -> Tensor:
    """The output, which may come before other results."""
    return result[0] if isinstance(result, tuple) else result


def joined(felt: Tensor, result: Any, clean: Any) -> Any:
    """The one result where something is felt, and the other where not, in the
    type of the other.
    """
    if not isinstance(result, tuple):
        return torch.where(felt, result.to(clean.dtype), clean)
    return tuple(
        joined(felt if x.ndim == felt.ndim else felt[..., 0], x, y)
        for x, y in zip(result, clean, strict=True)
    )


def shown_by_a_value(attend_so: Callable[..., Any]) -> Callable[..., Any]:
    """The same where values have no features, and an output has no number
    that would show what is spoilt: with one of zero, which is cut off again.
    """

    @wraps(attend_so)
    def wrapper(
        attend: Callable[..., Any],
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *args,
        **options,
    ) -> Any:
        """Attend to values that have a feature."""
        if v.shape[-1] or not can_look(v):
            return attend_so(attend, q, k, v, *args, **options)
        result = attend_so(attend, q, k, F.pad(v, (0, 1)), *args, **options)
        if not isinstance(result, tuple):
            return result[..., :0]
        return result[0][..., :0], *result[1:]

    return wrapper
