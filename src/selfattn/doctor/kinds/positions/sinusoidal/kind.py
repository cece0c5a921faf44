"""Tables of sines and cosines: one row a position."""

import dataclasses

from selfattn.doctor.exercise import name_of
from selfattn.doctor.exercises.positions.sinusoidal import (
    SINUSOIDAL,
    float64_returned,
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

REFERENCE = dataclasses.replace(
    SINUSOIDAL,
    name="sinusoidal",
    mistakes=MISTAKES,
    deviations=(*DEVIATIONS, *SINGLES),
    second=second,
    optional={
        "odd": "an odd number of features",
        "single": "a single feature",
        "long": "5000 positions",
    },
)

FLOAT64 = name_of(float64_returned)

KIND = Kind(
    "sinusoidal",
    does="of n and d_model, the Transformer's table of positions",
    exercise=lambda thing, facts: REFERENCE,
    facts=FACTS,
    read=read,
    adapt=adapt,
    meant={FLOAT64: 'dtypes=["float64"]'},
    promised_by={FLOAT64: "dtypes"},
)
