"""RoPE: functions that rotate queries and keys, in either order."""

import dataclasses

from selfattn.doctor.exercises.positions.rope import ROPE
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.positions.rotary.calling import FACTS, adapt, read
from selfattn.doctor.kinds.positions.rotary.mistakes import (
    DEVIATIONS,
    MISTAKES,
)
from selfattn.doctor.kinds.positions.rotary.probes import OPTIONAL, PROBES

REFERENCE = dataclasses.replace(
    ROPE,
    name="rope",
    probes=PROBES,
    mistakes=MISTAKES,
    optional=OPTIONAL,
    deviations=DEVIATIONS,
)

KIND = Kind(
    "rope",
    does="of queries or keys, the same with each pair of features turned",
    exercise=lambda thing, facts: REFERENCE,
    facts=FACTS,
    read=read,
    adapt=adapt,
)
