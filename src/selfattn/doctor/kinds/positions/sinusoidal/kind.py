"""Tables of sines and cosines: one row a position."""

import dataclasses
import functools
from typing import Any

from selfattn.doctor.exercise import Exercise, name_of
from selfattn.doctor.exercises.positions.sinusoidal import (
    PROBES,
    float64_returned,
    reaching_the_base,
)
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.positions import waves
from selfattn.doctor.kinds.positions.sinusoidal import steps
from selfattn.doctor.kinds.positions.sinusoidal.calling import (
    FACTS,
    adapt,
    read,
)
from selfattn.doctor.kinds.positions.sinusoidal.mistakes import (
    DEVIATIONS,
    MISTAKES,
)
from selfattn.doctor.patient import Facts
from selfattn.positions import sinusoidal

REFERENCE = Exercise(
    "sinusoidal",
    asks="a float32 table (n, d_model): sine and cosine of each angle",
    solution=lambda n, d_model: sinusoidal(n, d_model),
    probes=PROBES,
    mistakes=MISTAKES,
    deviations=(*DEVIATIONS, *steps.SINGLES),
    second=steps.second,
    optional={
        "odd": "an odd number of features",
        "single": "a single feature",
        "long": "5000 positions",
    },
)

FLOAT64 = name_of(float64_returned)
ANOTHER_BASE = name_of(waves.another_base)
REACHING = name_of(reaching_the_base)


@functools.cache
def of_steps(usual: steps.Table) -> Exercise:
    """The exercise of a table that ends elsewhere, or has another base.

    Of such a one only steps are known.
    """
    return dataclasses.replace(
        REFERENCE,
        solution=lambda n, d_model: steps.made(usual, n, d_model),
        mistakes=(),
        deviations=steps.beside(usual),
        second=lambda: steps.second(usual),
    )


@functools.cache
def of_width(exercise: Exercise, width: int) -> Exercise:
    """The exercise for who has so many features, and no other number."""
    probes = [
        dataclasses.replace(
            probe, inputs={**probe.inputs, "d_model": lambda _: width}
        )
        for probe in exercise.probes
    ]
    return dataclasses.replace(exercise, probes=tuple(probes))


def held_to(thing: Any, facts: Facts) -> Exercise:
    """The exercise with the exponents, the base and the width it has."""
    usual = steps.TO_THE_END if facts.get("ends") == "at 1" else steps.USUAL
    base = float(facts.get("base") or waves.BASE)
    usual = dataclasses.replace(usual, base=base)
    made = REFERENCE if usual == steps.USUAL else of_steps(usual)
    return of_width(made, facts["width"]) if facts.get("width") else made


KIND = Kind(
    "sinusoidal",
    does="of n and d_model, the Transformer's table of positions",
    exercise=held_to,
    facts=FACTS,
    read=read,
    adapt=adapt,
    meant={
        FLOAT64: 'dtypes=["float64"]',
        REACHING: "ends='at 1'",
        ANOTHER_BASE: "base=…",
    },
    promised_by={FLOAT64: "dtypes", REACHING: "ends", ANOTHER_BASE: "base"},
)
