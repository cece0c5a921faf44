"""Hostile together: what each oddity alone does not show.

Every number of a query or of all keys spoilt, in each type; no sequence, but
of one argument alone; values of no features beside a key that is spoilt.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from hostile.feeding import Call
from hostile.of_tables import last_of
from hostile.trials import Case, in_dtype, plain
from hostile.verdicts import Trial

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def trials(case: Case) -> Iterator[Trial]:
    """For mechanisms only."""
    if not (case.is_mechanism and "v" in case.call.given):
        return
    for options in ({}, {"causal": True}):
        call = few(case).having(**options)
        if refused(call):
            continue
        for dtype in FLOATS:
            yield from spoilt(case, in_dtype(call, dtype), dtype)
        yield from featureless(case, call)
    yield from nobody(case)


def few(case: Case) -> Call:
    """Fewer tokens than a processor takes at a time, if there can be; and
    values as wide as keys, without which PyTorch's kernels are not used.
    """
    n, sizes = case.rng.randint(2, 7), dict(case.sizes)
    if "d" in sizes:
        sizes["d_v"] = sizes["d"]
    try:
        return case.make({**sizes, "n_q": n, "n_k": n, "n": n})
    except ValueError:
        return case.make(sizes)


def refused(call: Call) -> bool:
    """Whether the definition refuses it, which is for others to see to."""
    try:
        plain(call)
    except ValueError:
        return True
    return False


def spoilt(case: Case, call: Call, dtype: torch.dtype) -> Iterator[Trial]:
    """A query that is NaN, or all keys of a sequence: whoever sees that says
    so, and nobody else does.
    """
    q, k = call.given["q"].clone(), call.given["k"].clone()
    at = case.rng.randrange(q.shape[-2])
    q[(0,) * (q.ndim - 2)][at] = math.nan
    k[(0,) * (k.ndim - 2)] = math.nan
    for name, x in (("q", q), ("k", k)):
        bad = call.having(**{name: x})
        yield case.trial(
            "a combination",
            f"{name} all NaN, {call.given.get('causal')}, in {dtype}",
            bad,
            lambda bad=bad: last_of(plain(bad)),
            run=lambda bad=bad: last_of(bad.run()),
            dtype=dtype,
        )


def featureless(case: Case, call: Call) -> Iterator[Trial]:
    """Values of no features, and the last key spoilt."""
    k, v = call.given["k"].clone(), call.given["v"][..., :0]
    k[..., -1, :] = math.nan
    bad = call.having(k=k, v=v)
    if call.module is None:
        yield case.trial(
            "a combination",
            f"d_v=0 and a spoilt key, {call.given.get('causal')}",
            bad,
            lambda: last_of(call.run())[..., :0],
            run=lambda: last_of(bad.run()),
        )


def nobody(case: Case) -> Iterator[Trial]:
    """An axis before the others, of nothing in one argument and one in the
    others: nothing comes out.
    """
    call = case.call
    if call.module is not None:
        return
    tensors = {n: call.given[n] for n in ("q", "k", "v")}
    for name in tensors:
        given: dict[str, Any] = {n: x[None] for n, x in tensors.items()}
        given[name] = given[name][:0]
        none = call.having(**given)
        yield case.trial(
            "a combination",
            f"{name} of no sequence",
            none,
            lambda: empty(last_of(call.run())),
            run=lambda none=none: last_of(none.run()),
        )


def empty(x: Tensor) -> Tensor:
    """None of these."""
    return x[None][:0]
