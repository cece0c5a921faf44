"""Softmax: functions and modules that turn scores into weights."""

import dataclasses

from selfattn.doctor.exercises.dot_product.softmax import SOFTMAX
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.softmax.calling import FACTS, adapt, read
from selfattn.doctor.kinds.softmax.mistakes import CONVENTIONS, MISTAKES
from selfattn.doctor.kinds.softmax.probes import OPTIONAL, PROBES

REFERENCE = dataclasses.replace(
    SOFTMAX,
    name="softmax",
    probes=PROBES,
    mistakes=list(MISTAKES),
    optional=OPTIONAL,
    conventions=CONVENTIONS,
)


KIND = Kind(
    "softmax",
    does=REFERENCE.asks,
    exercise=lambda thing, facts: REFERENCE,
    facts=FACTS,
    read=read,
    adapt=adapt,
)
