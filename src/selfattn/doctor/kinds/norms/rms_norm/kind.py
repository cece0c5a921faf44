"""RMSNorm: functions, classes and modules."""

import dataclasses

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Fact
from selfattn.doctor.kinds.norms import calling, steps
from selfattn.doctor.kinds.norms.rms_norm.mistakes import (
    CONVENTIONS,
    DEVIATIONS,
    MISTAKES,
)
from selfattn.doctor.kinds.norms.rms_norm.probes import PROBES
from selfattn.doctor.kinds.norms.rms_norm.reference import normal
from selfattn.doctor.kinds.norms.rms_norm.steps import KNOWN

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

KIND = calling.kind_of_norm(REFERENCE, FACTS)
