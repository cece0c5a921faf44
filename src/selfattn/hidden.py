"""What is hidden is not felt, not even where it is NaN or infinity.

A weight of zero is no protection from those: 0 · NaN is NaN. So a padded
token that holds garbage would spoil every query of its sequence, though none
may see it.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from selfattn.infinite import (
    MARK,
    all_felt,
    alone,
    first,
    joined,
    largest_number,
    on_smaller,
    shown_by_a_value,
    weightless,
    with_infinite,
)
from selfattn.pieces import without_autocast
from selfattn.spoilt import can_look, is_spoilt

Attention = Callable[[Tensor, Tensor, Tensor], Any]
# To which power of the largest number what is called large is larger: who
# sees a large value shall not feel one that is larger, and hidden.
LARGE = 0.9, 0.7, 0.5


@shown_by_a_value
def unfelt(
    attend: Attention,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    idle: Callable[[], Tensor] | None = None,
    surely: Attention | None = None,
    exactly: Attention | None = None,
    level: Attention | None = None,
) -> Any:
    """Attend; and where something came out spoilt, without what is hidden.

    That is looked for in the output, which costs next to nothing. What shows
    that it is hidden from a query is the mechanism itself: between queries
    and keys that are all alike, a key that is seen has a weight.

    Args:
        attend: the mechanism on q, k and v, with whatever it hides; it
            returns an output, (..., n_q, d_v), alone or before others.
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
        idle: which queries see no key, (..., n_q, 1), which are spoilt by
            nothing, not even by themselves; the mechanism shows it if None,
            as far as the scores of ones do not overflow.
        surely: the mechanism without dropout, if it has any.
        exactly: the mechanism in which a score that is hidden is not felt,
            though it be infinite or NaN, if it is not so itself.
        level: the mechanism without what is NaN or infinity in its bias.

    Returns:
        What the mechanism returns. Queries that are spoilt, or see a spoilt
        key that weighs something, get what the definition gives, and pass
        nothing back; so do those whose scores overflow. The others get what
        they would get if that key were not there; so it is with a value so
        large that what comes back to it overflows. Values that are numbers,
        but whose sum is none, are averaged all the same. On a GPU, which
        would have to wait for the answer, and while PyTorch traces or
        transforms, nothing is looked for, and what is hidden is felt as it
        is in PyTorch's own attention.
    """
    surely = surely or attend
    result = soundly(surely, attend, q, k, v)
    suspect = is_spoilt(first(result))
    # A spoilt key can leave the output sound, and spoil what is passed back:
    # where a mask takes its score away, or where each query's is -inf.
    if not (suspect or spoils_the_way_back(q, k)):
        return result
    idle = idle or partial(sees_nothing, surely, q, k, v)
    ways = attend, surely, exactly or attend, level or attend
    clean = partial(cleaned, ways, idle())
    return on_smaller(clean, q, k, v) if suspect else clean(q, k, v)


@shown_by_a_value
def unfelt_sums(
    attend: Attention,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    numbers: Callable[[Tensor], Tensor] = torch.clone,
    heaviest: Callable[[Tensor, Tensor], float] | None = None,
) -> Any:
    """The same for sums over all keys, or over all those before a query.

    Where nobody asks, no output shows what is spoilt: it is left out.

    Args:
        attend: the mechanism.
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
        numbers: makes of queries or keys others of the same features that
            are numbers, wherever those are though they be infinite.
        heaviest: how large a weight is at most, of queries and keys; values
            whose sum may be none are made smaller by it. None where such are
            computed once more, in another type.
    """
    if not q.shape[-2]:
        every = torch.ones((), dtype=torch.bool, device=k.device)
        k, v = (x.masked_fill(every, 0) for x in (k, v))
    result = soundly(attend, attend, q, k, v)
    if not is_spoilt(first(result)):
        return result
    q, k = numbers(q), numbers(k)
    clean = partial(cleaned, (attend,) * 4, sees_nothing(attend, q, k, v))
    if heaviest is None:
        return clean(q, k, v)
    return on_smaller(clean, q, k, v, heaviest(q, k))


def cleaned(
    ways: tuple[Attention, ...],
    idle: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
) -> Any:
    """The same where something is spoilt, by the ways in which to attend."""
    attend, surely, exactly, level = ways
    q = torch.where(idle, 0.0, q)
    lost = ~q.isfinite().all(dim=-1, keepdim=True)
    asked = q.masked_fill(lost, 0)
    sound, back = (partial(soundly, surely, way) for way in (attend, level))
    made = partial(alone, sound, back)
    seen = partial(sees, surely, asked, k, v)
    felt, clean = without_spoilt(made, seen, asked, k, v)
    felt = felt | lost
    with torch.no_grad():
        result = all_felt(exactly, q, k, v)
    if first(clean).requires_grad:
        felt, clean = weightless(back, (asked, k, v), felt, result, clean)
    return joined(felt, result, clean)


def soundly(
    surely: Attention, attend: Attention, q: Tensor, k: Tensor, v: Tensor
) -> Any:
    """Attend, not feeling what is large and not seen.

    Args:
        surely: shows who sees what: the mechanism without dropout.
        attend: the mechanism, or some of it.
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
    """
    seen = partial(sees, surely, q, k, v)
    return unless_large(partial(attend, q, k), seen, v)


def without_spoilt(
    made: Callable[..., tuple[Tensor, Any]],
    seen: Callable[[Tensor], Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
) -> tuple[Tensor, Any]:
    """What is felt, (..., n_q, 1), and the result without it: each query's by
    the first limit to keys that leaves it sound, so that no other's scores
    decide for it. Felt is a key beyond it that is seen, and whatever spoils
    a query by the last limit as well.

    That a result was sound before does not say that this one is: of queries
    that lie otherwise in memory products are added in another order, and two
    that overflow may then be NaN, and not infinite.

    Args:
        made: tells which queries overflow, and the result without them.
        seen: which queries see any of some keys, which are (..., n_k, 1).
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
    """
    over = q.new_ones((), dtype=torch.bool)
    felt, clean, before = ~over, None, None
    for most in limits(k):
        sound = (k.abs() < most).all(-1) & v.isfinite().all(-1)
        spoilt = ~sound[..., None]
        if before is not None and spoilt.equal(before):
            break
        before = spoilt
        now, result = made(q, *(x.masked_fill(spoilt, 0) for x in (k, v)))
        if spoilt.any():
            felt = torch.where(over, seen(spoilt), felt)
        clean = result if clean is None else joined(over, result, clean)
        over = over & now
        if not over.any():
            break
    return felt | over, clean


@shown_by_a_value
def all_seen(
    attend: Attention,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    besides: Callable[[], dict[str, Any]] = dict,
) -> Any:
    """The same as `unfelt` where all see all, and nothing is hidden: what is
    spoilt is felt where it weighs something, but on nobody else's way back,
    where it is times zero.
    """
    result = attend(q, k, v)
    # No output tells of an infinite query all of whose scores are -inf.
    learns = first(result).requires_grad
    felt_back = learns and (is_spoilt(k) or is_spoilt(q))
    if not (felt_back or is_spoilt(first(result))):
        return result
    return unfelt(attend, q, k, v, **besides())


def sees(
    attend: Attention, q: Tensor, k: Tensor, v: Tensor, keys: Tensor
) -> Tensor:
    """Which queries see any of some keys, (..., n_k, 1): have a weight for it,
    or would have, were all alike. Of alike keys, a bias that is low may leave
    nothing; of others, what is asked for.
    """
    marks = MARK * keys.to(v.dtype)
    marks = marks.expand(*keys.shape[:-1], width(v)).contiguous()
    near = k.detach().masked_fill(~(k.abs() < limits(k)[1]), 0)
    alike = torch.ones_like(q), torch.ones_like(k)
    asked = first(attend(q.detach(), near, marks)) != 0
    return (asked | (first(attend(*alike, marks)) != 0))[..., :1]


def sees_nothing(attend: Attention, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Which queries see no key, (..., n_q, 1): were all alike, and all keys
    marked, they would get nothing.
    """
    marks = v.new_full((*v.shape[:-1], width(v)), MARK)
    alike = torch.ones_like(q), torch.ones_like(k)
    return first(attend(*alike, marks))[..., :1] == 0


def width(v: Tensor) -> int:
    """How many features to mark a key with: one, or within `sdpa_kernel` as
    many as a value has, without which its fastest kernel takes none.
    """
    by_steps = torch.backends.cuda.math_sdp_enabled()
    return 1 if by_steps else max(1, v.shape[-1])


def unless_large(
    weigh: Callable[[Tensor], Any], seen: Callable[[Tensor], Tensor], v: Tensor
) -> Any:
    """What is made of values; to who does not see them, without large ones.

    A weight's gradient is a product with the value. If that overflows, it
    does so for hidden keys, too; and there 0 · ∞ is NaN.

    Args:
        weigh: makes a result of the values.
        seen: which queries see any of some keys, which are (..., n_k, 1).
        v: values, (..., n_k, d_v).
    """
    result = weigh(v)
    if not (first(result).requires_grad and can_look(v) and v.numel()):
        return result
    most = torch.finfo(v.dtype).max
    if largest_number(v) <= most**0.5:
        return result
    # What is spoilt is not large: it would say for all who see that one that
    # they see this one, too; and left out, it would not show.
    whole = v.isfinite().all(dim=-1, keepdim=True)
    for power in LARGE:
        large = whole & (v.abs() > most**power).any(dim=-1, keepdim=True)
        if large.any():
            without = weigh(v.masked_fill(large, 0))
            result = joined(seen(large), result, without)
    return result


def limits(k: Tensor) -> tuple[float, float]:
    """What numbers of a sound key stay below: infinity; or, if sums are still
    spoilt then, what can be squared in the type that they are made in.
    """
    wide = torch.promote_types(k.dtype, torch.float32)
    return math.inf, torch.finfo(wide).max ** 0.49


def spoils_the_way_back(q: Tensor, k: Tensor) -> bool:
    """Whether a query or a key is NaN or infinite, and any gets a gradient.

    Even what a hidden key passes back is made by it: 0 · NaN is NaN. So is
    what a query passes back that sees no key, or that nobody asked for.
    """
    if not (torch.is_grad_enabled() and (q.requires_grad or k.requires_grad)):
        return False
    return is_spoilt(q) or is_spoilt(k)


@without_autocast
def products(q: Tensor, k: Tensor) -> Tensor:
    """The scores q kᵀ."""
    return q @ k.mT


def match(
    q: Tensor, k: Tensor, score: Callable[..., Tensor] = products
) -> Tensor:
    """The scores, q kᵀ, on whose way back what is spoilt is not felt.

    What a hidden key passes back to q is its score's gradient, which is
    zero, times the key: NaN, if it is NaN or infinite. So it is with what a
    query that sees no key passes back to all of them.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        score: makes scores, (..., n_q, n_k), of them.

    >>> q = torch.ones(1, 1, requires_grad=True)
    >>> scores = match(q, torch.tensor([[2.0], [torch.nan]]))
    >>> scores
    tensor([[2., nan]], grad_fn=<WhereBackward0>)
    >>> torch.autograd.grad(scores[0, 0], q)
    (tensor([[2.]]),)
    """
    scores = score(q, k)
    if not spoils_the_way_back(q, k):
        return scores
    rows, keys = (~x.isfinite().all(dim=-1, keepdim=True) for x in (q, k))
    sound = score(q.masked_fill(rows, 0), k.masked_fill(keys, 0))
    return torch.where(rows | keys.mT, scores.detach(), sound)


@without_autocast
def average(weights: Tensor, v: Tensor) -> Tensor:
    """Weights @ v, in which a value that weighs nothing counts nothing.

    Args:
        weights: (..., n_q, n_k).
        v: values, (..., n_k, d_v).

    >>> v = torch.tensor([[1.0], [torch.nan]])
    >>> average(torch.tensor([[1.0, 0.0]]), v)
    tensor([[1.]])
    """
    seen = partial(weigh_any, weights, v)
    output = unless_large(partial(torch.matmul, weights), seen, v)
    if not is_spoilt(output):
        return output
    spoilt = ~v.isfinite().all(dim=-1, keepdim=True)
    felt = seen(spoilt) | ~weights.isfinite().all(dim=-1, keepdim=True)
    known = weights.masked_fill(felt, 0)
    clean = unless_large(known.matmul, seen, v.masked_fill(spoilt, 0))
    with torch.no_grad():
        output = with_infinite(weights.matmul, v)
    return torch.where(felt, output, clean)


def felt_alone(output: Tensor) -> Tensor:
    """The same, of which a query that got NaN or infinity passes nothing
    back: who feels that by one of two averages does so by neither.

    >>> x = torch.tensor([[1.0], [torch.nan]], requires_grad=True)
    >>> torch.autograd.grad(felt_alone(2 * x).sum(), x)
    (tensor([[2.],
            [0.]]),)
    """
    if not (output.requires_grad and is_spoilt(output)):
        return output
    felt = ~output.isfinite().all(dim=-1, keepdim=True)
    return torch.where(felt, output.detach(), output)


def weigh_any(weights: Tensor, v: Tensor, keys: Tensor) -> Tensor:
    """Which queries weigh any of some keys, which are (..., n_k, 1)."""
    return (weights != 0).to(v) @ keys.to(v) != 0
