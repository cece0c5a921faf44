"""Softmax: functions and modules that turn scores into weights."""

import dataclasses

from selfattn.doctor.exercises.dot_product.softmax import SOFTMAX
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.softmax.calling import FACTS, adapt, read
from selfattn.doctor.kinds.softmax.masked import under_masks
from selfattn.doctor.kinds.softmax.mistakes import CONVENTIONS, MISTAKES
from selfattn.doctor.kinds.softmax.probes import OPTIONAL, PROBES
from selfattn.doctor.kinds.softmax.steps import SINGLES, second

REFERENCE = dataclasses.replace(
    SOFTMAX,
    name="softmax",
    probes=PROBES,
    mistakes=MISTAKES,
    optional=OPTIONAL,
    conventions=CONVENTIONS,
    deviations=SINGLES,
    second=second,
)
MASKED = under_masks(REFERENCE)

KIND = Kind(
    "softmax",
    does=REFERENCE.asks,
    exercise=lambda thing, facts: MASKED if "masked" in facts else REFERENCE,
    facts=FACTS,
    read=read,
    adapt=adapt,
    as_used=True,
)
