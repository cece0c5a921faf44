"""Hostile tables: masks, biases and the future, for all who take them.

What a query cannot see it must not feel: no NaN, no infinity, however large.
Who sees what is read off the definition: a value moves, or it does not.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from hostile.feeding import Call
from hostile.of_numbers import call_of_places
from hostile.trials import Case, in_dtype, plain, poisons, with_gradients
from hostile.verdicts import Trial, leaves


def trials(case: Case) -> Iterator[Trial]:
    """For mechanisms only."""
    if not case.is_mechanism:
        return
    for name, options in tables(case):
        call = case.call.having(**options)
        yield with_table(case, name, call)
        yield with_table(case, name, in_dtype(call, torch.float32))
        yield from hidden(case, name, call)
        yield from seen(case, name, call)
    yield from scores_of_one_size(case)
    yield from bad_tables(case)


def tables(case: Case) -> Iterator[tuple[str, dict[str, Any]]]:
    """Masks, biases and the future, alone and together."""
    q, k = case.call.given["q"], case.call.given["k"]
    shape = q.shape[-2], k.shape[-2]
    mask = torch.rand(shape) < 0.6
    holes = mask.clone()
    holes[case.rng.randrange(shape[0])] = False
    by_key = torch.rand(shape[1:]) < 0.7
    heads = torch.rand(q.shape[0], *shape) < 0.6
    bias = torch.randn(shape, dtype=q.dtype)
    parameters = case.call.target.parameters
    yield "no table", {}
    if "causal" in parameters:
        yield "causal", {"causal": True}
    if "mask" not in parameters:
        return
    if q.ndim < 4:
        yield "a mask for each sequence", {"mask": heads}
    yield "a mask", {"mask": mask}
    yield "a mask with an empty row", {"mask": holes}
    yield "a mask of keys", {"mask": by_key[None]}
    yield "a mask of one axis", {"mask": by_key}
    yield "a mask of nothing", {"mask": torch.zeros_like(mask)}
    yield "a bias", {"bias": bias}
    yield "a bias of keys", {"bias": bias[:1]}
    yield (
        "a bias with minus infinity",
        {"bias": bias.masked_fill(~mask, -math.inf)},
    )
    yield "a mask and a bias", {"mask": mask, "bias": bias}
    if "causal" in parameters:
        yield "causal with a mask", {"mask": mask, "causal": True}
        yield "causal with a bias", {"bias": bias, "causal": True}
    if call_of_places(case):
        return
    # All alike, else 1e8 rounds the scores away.
    alike = {"q": torch.zeros_like(q), "k": torch.zeros_like(k)}
    yield "a bias of 1e8", {**alike, "bias": torch.full_like(bias, 1e8)}
    yield "a bias of -1e30", {**alike, "bias": bias * 0 - 1e30}


def with_table(case: Case, name: str, call: Call) -> Trial:
    """In value and gradient."""
    dtype = call.given["q"].dtype
    return case.trial(
        "a table",
        f"{name} in {dtype}",
        call,
        lambda: with_gradients(call, plain),
        run=lambda: with_gradients(call),
        dtype=dtype,
    )


def hidden(case: Case, name: str, call: Call) -> Iterator[Trial]:
    """A poisoned key and value, looked at by those who cannot see it."""
    if "v" not in call.given:
        return
    try:
        plain(call)
    except ValueError:
        return  # a table that is refused, which `with_table` sees to
    n_k = call.given["k"].shape[-2]
    for poison in poisons(case.rng):
        at = case.rng.randrange(n_k)
        which = case.rng.choice((("k",), ("v",), ("k", "v")))
        changed = {n: replaced(call.given[n], at, poison) for n in which}
        bad = call.having(**changed)
        yield case.trial(
            "a hidden number",
            f"{name}, {' and '.join(which)}[{at}] = {poison}",
            bad,
            lambda at=at: blind_rows(call, at, call, plain),
            run=lambda at=at, bad=bad: blind_rows(call, at, bad, Call.run),
        )


def seen(case: Case, name: str, call: Call) -> Iterator[Trial]:
    """NaN in a value: whoever sees it says so, and nobody else does."""
    if "v" not in call.given or not call.given["v"].numel():
        return
    at = case.rng.randrange(call.given["k"].shape[-2])
    bad = call.having(v=replaced(call.given["v"], at, math.nan))
    yield case.trial(
        "a number",
        f"{name}, v[{at}] = nan",
        bad,
        lambda: replaced_where_felt(call, at),
        run=lambda: last_of(bad.run()),
    )


def replaced_where_felt(call: Call, at: int) -> Tensor:
    """The output, with NaN for the queries that see a value."""
    one = last_of(plain(call))
    other = last_of(plain(call.having(v=replaced(call.given["v"], at, 3.0))))
    felt = (one != other).any(dim=-1, keepdim=True)
    return one.masked_fill(felt, math.nan)


def replaced(x: Tensor, at: int, value: float) -> Tensor:
    """A copy with another token there, in the first sequence only."""
    copy = x.clone()
    copy[(0,) * (x.ndim - 2)][at] = value
    return copy


def blind_rows(call: Call, at: int, asked: Call, run: Any) -> list[Tensor]:
    """The outputs of those queries that do not see a key.

    Whether they do, the definition says: it gives them the same for another
    value there.
    """
    v = call.given["v"]
    one = last_of(plain(call))
    other = last_of(plain(call.having(v=replaced(v, at, 3.0))))
    blind = (one == other).all(dim=-1)
    return [last_of(run(asked))[blind]]


def last_of(result: Any) -> Tensor:
    """The output, which other results may come before or after."""
    tensors = leaves(result)
    return tensors[-1] if len(tensors) == 5 else tensors[0]


def scores_of_one_size(case: Case) -> Iterator[Trial]:
    """One key stands out by far; so do the values of one token."""
    if not {"q", "k", "v"} <= {*case.call.given}:
        return
    q, k = case.call.given["q"], case.call.given["k"]
    if q.shape[-1] != k.shape[-1] or call_of_places(case):
        return
    for size in (1e4, 1e8, 1e15):
        alike = torch.ones_like(k)
        alike[..., case.rng.randrange(k.shape[-2]), :] = size
        call = case.call.having(q=torch.ones_like(q), k=alike)
        yield case.trial(
            "a magnitude",
            f"one key {size:g}",
            call,
            lambda call=call: plain(call),
            run=lambda call=call: in_dtype(call, torch.float32).run(),
            dtype=torch.float32,
        )


def bad_tables(case: Case) -> Iterator[Trial]:
    """Tables that fit nothing."""
    q, k = case.call.given["q"], case.call.given["k"]
    n_q, n_k = q.shape[-2], k.shape[-2]
    if "mask" not in case.call.target.parameters:
        return
    for shape in ((n_q + 1, n_k), (n_q, n_k + 1), (2, 2, 2, 2, n_q, n_k)):
        yes = torch.ones(shape, dtype=torch.bool)
        yield case.nonsense("a table", f"a mask {shape}", mask=yes)
        zeros = torch.zeros(shape, dtype=q.dtype)
        yield case.nonsense("a table", f"a bias {shape}", bias=zeros)
    square = torch.ones(n_q, n_k)
    yield case.nonsense("a table", "a mask of floats", mask=square)
    yield case.nonsense("a table", "a mask of 0 and 1", mask=square.long())
    yield case.nonsense("a table", "a bias of yes and no", bias=square.bool())
    yield case.nonsense("a table", "a bias of 0 and 1", bias=square.long())
    for wrong in (None, "text", [[True]], 1, 0.5):
        if wrong is not None:
            yield case.nonsense("a table", f"mask={wrong}", mask=wrong)
            yield case.nonsense("a table", f"bias={wrong}", bias=wrong)
