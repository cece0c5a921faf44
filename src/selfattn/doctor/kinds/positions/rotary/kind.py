"""RoPE: functions that rotate queries and keys, in either order."""

import dataclasses
import functools

from selfattn.doctor.exercise import Exercise, name_of
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.positions import waves
from selfattn.doctor.kinds.positions.rotary.calling import (
    FACTS,
    adapt,
    perhaps,
    read,
)
from selfattn.doctor.kinds.positions.rotary.mistakes import (
    DEVIATIONS,
    MISTAKES,
    nothing_turned,
    only_half_of_the_features,
)
from selfattn.doctor.kinds.positions.rotary.part import turned_at
from selfattn.doctor.kinds.positions.rotary.probes import (
    OPTIONAL,
    PROBES,
    fitted,
)
from selfattn.doctor.kinds.positions.rotary.steps import SINGLES, second
from selfattn.doctor.kinds.positions.rotary.steps import of_base as of_a_base
from selfattn.positions import rope

ANOTHER_BASE = name_of(waves.another_base)
ONLY_HALF = name_of(only_half_of_the_features)
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


def of_base(base: float) -> Exercise:
    """The exercise of a rotation with another base; only steps are known."""
    return dataclasses.replace(
        REFERENCE,
        solution=lambda x, offset: rope(x, base=base, offset=offset),
        mistakes=(nothing_turned,),
        deviations=of_a_base(base),
        second=lambda: second(base),
    )


@functools.cache
def for_size(
    width: int | None,
    longest: int | None,
    part: float | None = None,
    base: float | None = None,
) -> Exercise:
    """The exercise for who has this width and base, and counts so far."""
    usual = base in (None, waves.BASE)
    exercise = REFERENCE if usual else of_base(float(base or waves.BASE))
    if width is not None and part:
        width = turned_at(width, part)
    if width is None and longest is None:
        return exercise
    return dataclasses.replace(exercise, probes=fitted(width, longest))


KIND = Kind(
    "rope",
    does="of queries or keys, the same with each pair of features turned",
    exercise=lambda thing, facts: for_size(
        facts.get("width"),
        facts.get("longest"),
        facts.get("part"),
        facts.get("base"),
    ),
    facts=FACTS,
    read=read,
    adapt=adapt,
    perhaps=perhaps,
    meant={ANOTHER_BASE: "base=…", ONLY_HALF: "part=0.5"},
    promised_by={ANOTHER_BASE: "base", ONLY_HALF: "part"},
)
