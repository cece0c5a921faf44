"""Functions that make causal masks, in whatever convention."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercises.masks.causal import CAUSAL, triangle
from selfattn.doctor.kind import Fact, Kind
from selfattn.doctor.kinds.mask_meanings import OF_A_MAKER, as_ours
from selfattn.doctor.patient import Facts

LENGTHS = (
    "with a cache, one new query sees everything",
    "with a cache, the last query sits on the last key",
    "queries before the first key see nothing",
)
REFERENCE = dataclasses.replace(
    CAUSAL,
    name="causal-mask",
    probes=tuple(
        dataclasses.replace(probe, needs=("length",), convention="alignment")
        if probe.asks in LENGTHS
        else dataclasses.replace(
            probe, needs=("empty",) * (probe.asks == "no queries make no rows")
        )
        for probe in CAUSAL.probes
    ),
    mistakes=list(CAUSAL.mistakes),
    optional={
        "length": "another number of keys than of queries",
        "empty": "no queries at all",
    },
    conventions={"alignment": {"last": "", "first": "first on first"}},
)


@REFERENCE.mistake
def everything_allowed(n_q, n_k):
    """Every query sees everything, the future, too.

    Cause: triu or tril was forgotten, or its result was thrown away.
    Cure: j <= i.
    Chapter: masks
    """
    return torch.ones(n_q, n_k, dtype=torch.bool)


@REFERENCE.mistake
def itself_alone(n_q, n_k):
    """Each token sees itself and nothing else.

    Cause: The positions are compared with ==, or eye was meant to be tril.
    Cure: j <= i.
    Chapter: masks
    """
    return triangle(n_q, n_k, n_k - n_q) & ~triangle(n_q, n_k, n_k - n_q - 1)


def look(thing: Any, said: Facts) -> dict[str, Any]:
    """Whether it takes one number or two."""
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return {}
    needed = [
        p for p in found if p.default is p.empty and p.kind < p.VAR_POSITIONAL
    ]
    seen: dict[str, Any] = {"arguments": len(needed)}
    if len(needed) == 1:
        why = "it takes one number"
        seen["lacks"] = {"length": why, "empty": why}
    return seen


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


KIND = Kind(
    "causal-mask",
    asks="of n_q and n_k, or of n, a table: who may look at whom",
    exercise=lambda thing, facts: REFERENCE,
    facts={
        "mask": Fact("what the mask says", OF_A_MAKER),
        "alignment": Fact(
            "on which key the last, or the first, query sits",
            {
                "last": "the last on the last",
                "first": "the first on the first",
            },
            tried=False,
        ),
        "arguments": Fact("how many numbers it takes, 1 or 2"),
    },
    look=look,
    adapt=adapt,
)
