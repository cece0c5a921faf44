"""RoPE: functions that rotate queries and keys, in either order."""

import dataclasses
import functools

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.positions.rotary.calling import (
    FACTS,
    adapt,
    perhaps,
    read,
)
from selfattn.doctor.kinds.positions.rotary.mistakes import (
    DEVIATIONS,
    MISTAKES,
)
from selfattn.doctor.kinds.positions.rotary.part import turned_at
from selfattn.doctor.kinds.positions.rotary.probes import (
    OPTIONAL,
    PROBES,
    fitted,
)
from selfattn.doctor.kinds.positions.rotary.steps import SINGLES, second
from selfattn.positions import rope

REFERENCE = Exercise(
    "rope",
    asks="each pair (2i, 2i + 1) turned by the angle p 10000^(-2i/d)",
    solution=lambda x, offset: rope(x, offset=offset),
    probes=PROBES,
    mistakes=MISTAKES,
    optional=OPTIONAL,
    deviations=(*DEVIATIONS, *SINGLES),
    second=second,
)


@functools.cache
def for_size(
    width: int | None, longest: int | None, part: float | None = None
) -> Exercise:
    """The exercise for who has this width, and counts so far."""
    if width is not None and part:
        width = turned_at(width, part)
    if width is None and longest is None:
        return REFERENCE
    return dataclasses.replace(REFERENCE, probes=fitted(width, longest))


KIND = Kind(
    "rope",
    does="of queries or keys, the same with each pair of features turned",
    exercise=lambda thing, facts: for_size(
        facts.get("width"), facts.get("longest"), facts.get("part")
    ),
    facts=FACTS,
    read=read,
    adapt=adapt,
    perhaps=perhaps,
)
