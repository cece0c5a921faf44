"""How makers of causal masks are called, and what their masks say."""

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.mask_meanings import OF_A_MAKER, as_ours
from selfattn.doctor.patient import Facts

FACTS = {
    "mask": Fact("what the mask says", OF_A_MAKER),
    "alignment": Fact(
        "on which key the last, or the first, query sits",
        {
            "last": "the last on the last",
            "first": "the first on the first",
        },
        tried=False,
    ),
    "arguments": Fact(
        "how many numbers it takes, 1 or 2", saying=sayings.ONE_OR_TWO
    ),
}


def read(thing: Any, told: Facts) -> Reading:
    """Whether it takes one number or two; what was told comes first."""
    many = told.get("arguments") or how_many(thing)
    why = "it takes one number"
    lacks = {"length": why, "empty": why} if many == 1 else {}
    if many != 1 and not makes_early_rows(thing):
        lacks["early"] = "of more queries than keys it makes no such table"
    return Reading({"arguments": many} if many else {}, lacks=lacks)


def how_many(thing: Any) -> int:
    """How many numbers it needs, a module to be called; 0 if none can tell."""
    try:
        called = getattr(thing, "forward", thing)
        found = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        return 0
    needed = [
        p for p in found if p.default is p.empty and p.kind < p.VAR_POSITIONAL
    ]
    return len(needed)


def makes_early_rows(thing: Any) -> bool:
    """Whether there is a table for queries that come before every key.

    Who cuts its rows out of a square, or puts zeros for the past before it,
    has none, and hardly anybody ever asks for one.
    """
    made = trial_calls.outcome(thing, 7, 3)
    return not isinstance(made, Tensor) or made.shape[-2:] == (7, 3)


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with one number or two; make its mask one of ours."""

    def causal(n_q: int, n_k: int) -> object:
        lengths = (n_q, n_k)[: facts.get("arguments", 2)]
        return as_ours(without_ones(thing(*lengths)), facts["mask"])

    return causal


def without_ones(mask: Any) -> Any:
    """A mask without the axes for batch and heads in front."""
    while isinstance(mask, Tensor) and mask.ndim > 2 and len(mask) == 1:
        mask = mask[0]
    return mask
