"""LayerNorm: functions, classes and modules."""

import dataclasses

from selfattn.doctor.exercise import name_of
from selfattn.doctor.exercises.layers.layer_norm import LAYER_NORM
from selfattn.doctor.kinds.norms import calling, steps
from selfattn.doctor.kinds.norms.layer_norm.mistakes import (
    CONVENTIONS,
    DEVIATIONS,
    MISTAKES,
    one_plus_the_gain,
)
from selfattn.doctor.kinds.norms.layer_norm.probes import PROBES
from selfattn.doctor.kinds.norms.layer_norm.steps import KNOWN

REFERENCE = dataclasses.replace(
    LAYER_NORM,
    name="layer-norm",
    probes=PROBES,
    mistakes=MISTAKES,
    optional=calling.OPTIONAL,
    conventions=CONVENTIONS,
    deviations=DEVIATIONS,
)
REFERENCE = dataclasses.replace(
    REFERENCE, **steps.taken_apart(REFERENCE, steps.LAYER, KNOWN, shifts=True)
)

KIND = calling.kind_of_norm(REFERENCE, name_of(one_plus_the_gain))
