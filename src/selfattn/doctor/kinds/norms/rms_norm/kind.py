"""RMSNorm: functions, classes and modules."""

import dataclasses
from collections.abc import Callable
from typing import Any

from torch import Tensor

from selfattn.doctor.exercise import Exercise, name_of
from selfattn.doctor.kind import Fact
from selfattn.doctor.kinds.norms import calling, steps
from selfattn.doctor.kinds.norms.rms_norm.mistakes import (
    CONVENTIONS,
    DEVIATIONS,
    MISTAKES,
    eps_as_a_floor,
    one_plus_the_gain,
)
from selfattn.doctor.kinds.norms.rms_norm.probes import PROBES
from selfattn.doctor.kinds.norms.rms_norm.reference import normal
from selfattn.doctor.kinds.norms.rms_norm.steps import KNOWN
from selfattn.doctor.patient import Facts

FACTS = {
    **calling.FACTS,
    "precision": Fact(
        "in what it computes when x is float64",
        {
            "exact": "float64",
            "float32": "float32",
            "mixed": "float64, but for the squares",
        },
        tried=False,
    ),
    "eps_as": Fact(
        "what eps does; F.normalize has a floor",
        {
            "term": "it is added under the root",
            "floor": "the length is no smaller",
        },
        tried=False,
    ),
}

REFERENCE = Exercise(
    "rms-norm",
    asks="x / √(mean(x²) + eps) · gain, for each token",
    solution=normal,
    probes=PROBES,
    mistakes=MISTAKES,
    optional=calling.OPTIONAL,
    conventions=CONVENTIONS,
    deviations=DEVIATIONS,
)
REFERENCE = dataclasses.replace(
    REFERENCE, **steps.taken_apart(REFERENCE, steps.RMS, KNOWN, shifts=False)
)


def next_to_none(answer: Callable[..., object]) -> Callable[..., object]:
    """An answer with so small an eps that no token but zeros meets it.

    So are all tokens of the probes above a floor.
    """

    def norm(x: Tensor, *learnt_and_eps: Any) -> object:
        return answer(x, *learnt_and_eps[:-1], 1e-30)

    return norm


ABOVE_A_FLOOR = REFERENCE.adapted(next_to_none)


def held_to(thing: Any, facts: Facts) -> Exercise:
    """The exercise by which eps is what it was told to be, at its width."""
    floor = facts.get("eps_as") == "floor"
    reference = ABOVE_A_FLOOR if floor else REFERENCE
    return calling.of_its_width(reference, facts)


NORM = calling.kind_of_norm(REFERENCE, name_of(one_plus_the_gain), FACTS)
KIND = dataclasses.replace(
    NORM,
    exercise=held_to,
    meant={**NORM.meant, name_of(eps_as_a_floor): "eps_as='floor'"},
    promised_by={**NORM.promised_by, name_of(eps_as_a_floor): "eps"},
)
