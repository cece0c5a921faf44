"""Facts that nobody told of a function, found by what it does.

Nobody caps scores, sees a band of keys alone or every third by mistake. And
who has one head of keys for all, or needs as many queries as keys, may never
have thought that anybody would call him otherwise.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.attention.calling import adapt
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

N = 13  # tokens, to see who sees whom
FINE = 1e-5  # of a number, what float32 cannot tell
MOST = 200.0  # that a cap may be: of more, float32 sees nothing
OF_SIGHT = ("window", "table", "bias")
Table = Callable[[int, int], Tensor]


def perhaps(thing: Any, facts: Facts) -> Iterator[Facts]:
    """What may be meant: a cap, a scale, or a mask that it keeps by itself."""
    yield from of_form(thing, facts)
    known = "kernel" in facts or facts.get("cap") is not None
    cap = None if known else cap_of(thing, facts)
    if cap is not None:
        yield {"cap": cap}
    capped: Facts = {} if cap is None else {"cap": cap}
    known = "kernel" in facts
    scale = None if known else scale_of(thing, {**facts, **capped})
    if scale is not None:
        yield {"scale": scale, **capped}
    yield from of_sight(thing, facts)


def of_form(thing: Any, facts: Facts) -> Iterator[Facts]:
    """What it takes: a head of keys for all, or as many keys as queries."""
    if "grouped" not in facts and not any(of_axes(thing, facts, N)):
        for grouped in ("one", True):
            yield {"grouped": grouped}
    hides = facts.get("causal") or any(facts.get(n) for n in OF_SIGHT)
    if hides and not {"square", "alignment"} & facts.keys():
        yield {"square": True}


def of_sight(thing: Any, facts: Facts) -> Iterator[Facts]:
    """Which keys it sees, if that is something that may be meant.

    Who has a flag for it is not meant to be causal without.
    """
    flag = "causal" in (facts.get("names") or {})
    may_be = not (facts.get("causal") or flag)
    if any(facts.get(name) is not None for name in OF_SIGHT):
        if may_be:
            yield {"causal": True}
        return
    seen = sight(thing, facts)
    if seen is None:
        return
    always: Facts = {"causal": True} if may_be and is_causal(seen) else {}
    if always:
        yield always
    if (window := window_of(seen)) is not None:
        yield {"window": window, **always}
    if (stride := stride_of(seen)) is not None:
        yield {"table": strided(stride, is_causal(seen)), **always}


def of_axes(thing: Any, facts: Facts, n: int) -> Iterator[tuple[Any, ...]]:
    """Calls of it, each with q, k and v of so many tokens that it takes."""
    call = adapt(thing, {**facts, "call": facts.get("call")})
    for front in ((2, 3), (2,)):
        qkv = [numbers(*front, n, 4, seed=seed) for seed in range(3)]
        output = trial_calls.outcome(call, *qkv)
        if isinstance(output, Tensor) and output.shape == qkv[2].shape:
            yield call, *qkv


def cap_of(thing: Any, facts: Facts) -> float | None:
    """The number that no score passes, if there is one.

    Of two keys one has a score in the thousands and the other none: how
    little the weight of that one is tells how far the first is from it.
    """
    for call, q, k, v in of_axes(thing, facts, 2):
        q, k, v = (torch.zeros_like(x) for x in (q, k, v))
        q[..., 0], k[..., 0, 0], v[..., 1, :] = 300.0, 300.0, 1.0
        output = trial_calls.outcome(call, q, k, v)
        if not isinstance(output, Tensor):
            return None
        weight = float(output[..., -1, :].double().mean())
        far = math.log(1 / weight - 1) if 0 < weight < 0.5 else MOST
        return float(f"{far:.4g}") if far < MOST else None
    return None


def scale_of(thing: Any, facts: Facts) -> float | None:
    """The scale of whoever hands none over, if it is not the usual one.

    It stands in its signature, or is told by the weight of a key with a
    product of one, beside another with none.
    """
    if (said := scale_said(thing)) is not None or "scale" in facts:
        return said
    for call, q, k, v in of_axes(thing, facts, 2):
        q, k, v = (torch.zeros_like(x) for x in (q, k, v))
        q[..., 0], k[..., 0, 0], v[..., 0, :] = 1.0, 1.0, 1.0
        output = trial_calls.outcome(call, q, k, v)
        if not isinstance(output, Tensor):
            return None
        weight = float(output[..., -1, :].double().mean())
        if not 0 < weight < 1:
            return None
        score = uncapped(math.log(weight / (1 - weight)), facts.get("cap"))
        scale = in_few_digits(score)
        return None if scale == q.shape[-1] ** -0.5 else scale
    return None


def in_few_digits(x: float) -> float:
    """A number as somebody may have written it, or else as it was measured.

    >>> in_few_digits(0.30000012), in_few_digits(1 / 3)
    (0.3, 0.333333)
    """
    few, more = float(f"{x:.3g}"), float(f"{x:.6g}")
    return few if abs(few - x) < FINE * abs(x) else more


def uncapped(score: float, cap: float | None) -> float:
    """What a score was before it was capped, if it was.

    >>> round(uncapped(5 * math.tanh(3 / 5), 5), 3), uncapped(2.0, None)
    (3.0, 2.0)
    """
    if cap is None or abs(score) >= cap:
        return score
    return cap * math.atanh(score / cap)


def scale_said(thing: Any) -> float | None:
    """The scale that stands in its signature."""
    try:
        listed = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return None
    said = [p.default for p in listed if "scal" in p.name.lower()]
    numbers_said = [x for x in said if isinstance(x, int | float)]
    return float(numbers_said[0]) if numbers_said else None


def sight(thing: Any, facts: Facts) -> Tensor | None:
    """Which token's output moves with which value, (N, N)."""
    for call, q, k, v in of_axes(thing, facts, N):
        before, columns = trial_calls.outcome(call, q, k, v), []
        for j in range(N):
            other = v.clone()
            other[..., j, :] += 50
            after = trial_calls.outcome(call, q, k, other)
            moved = (after - before).abs().amax(dim=-1) > 1e-4
            columns.append(moved.reshape(-1, N)[0])
        return torch.stack(columns, dim=1)
    return None


def offsets() -> Tensor:
    """How far behind a query each key is, (N, N)."""
    i = torch.arange(N)
    return i[:, None] - i


def is_causal(seen: Tensor) -> bool:
    """Whether no later token is seen, and each sees itself."""
    return bool(seen.equal(seen.tril()) and seen.diagonal().all())


def window_of(seen: Tensor) -> int | None:
    """How far it sees, if that is a band narrower than the text."""
    for window in range(1, N - 1):
        band = offsets().abs() < window
        if seen.equal(band.tril() if is_causal(seen) else band):
            return window
    return None


def stride_of(seen: Tensor) -> int | None:
    """Every how many tokens it looks at one, from itself on."""
    for stride in range(2, N // 2):
        table = offsets() % stride == 0
        if seen.equal(table.tril() if is_causal(seen) else table):
            return stride
    return None


def strided(stride: int, causal: bool) -> Table:
    """The table of who looks at every so many-th token."""

    def table(n_q: int, n_k: int) -> Tensor:
        i = torch.arange(n_k - n_q, n_k)[:, None]
        seen = (i - torch.arange(n_k)) % stride == 0
        return seen.tril(n_k - n_q) if causal else seen

    return table
