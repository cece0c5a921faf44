"""Tables of sines and cosines: one row a position."""

import dataclasses
from typing import Any

from selfattn.doctor.exercise import Exercise, name_of
from selfattn.doctor.exercises.positions.sinusoidal import (
    PROBES,
    float64_returned,
    reaching_the_base,
)
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.positions.sinusoidal.calling import (
    FACTS,
    adapt,
    read,
)
from selfattn.doctor.kinds.positions.sinusoidal.mistakes import (
    DEVIATIONS,
    MISTAKES,
)
from selfattn.doctor.kinds.positions.sinusoidal.steps import SINGLES, second
from selfattn.doctor.patient import Facts
from selfattn.positions import sinusoidal

REFERENCE = Exercise(
    "sinusoidal",
    asks="a float32 table (n, d_model): sine and cosine of each angle",
    solution=lambda n, d_model: sinusoidal(n, d_model),
    probes=PROBES,
    mistakes=MISTAKES,
    deviations=(*DEVIATIONS, *SINGLES),
    second=second,
    optional={
        "odd": "an odd number of features",
        "single": "a single feature",
        "long": "5000 positions",
    },
)

# What is wrong with one that ends elsewhere has no name here.
TO_THE_END = dataclasses.replace(
    REFERENCE,
    solution=reaching_the_base,
    mistakes=(),
    deviations=(),
    second=tuple,
)
FLOAT64 = name_of(float64_returned)
REACHING = name_of(reaching_the_base)


def held_to(thing: Any, facts: Facts) -> Exercise:
    """The exercise with the exponents that were told."""
    return TO_THE_END if facts.get("ends") == "at 1" else REFERENCE


KIND = Kind(
    "sinusoidal",
    does="of n and d_model, the Transformer's table of positions",
    exercise=held_to,
    facts=FACTS,
    read=read,
    adapt=adapt,
    meant={FLOAT64: 'dtypes=["float64"]', REACHING: "ends='at 1'"},
    promised_by={FLOAT64: "dtypes", REACHING: "ends"},
)
