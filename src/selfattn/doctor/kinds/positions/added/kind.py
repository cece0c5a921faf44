"""Modules that add a position to each token, from a table of their own."""

from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from selfattn.doctor.deviations.number_types import TYPES
from selfattn.doctor.deviations.training import with_dropout
from selfattn.doctor.exercise import Exercise
from selfattn.doctor.exercises.positions.batch_axis import (
    BATCH_AXIS,
    add_positions,
)
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.positions.added.calling import (
    FACTS,
    adapt,
    prepare,
    read,
)
from selfattn.doctor.kinds.positions.added.mistakes import MISTAKES
from selfattn.doctor.kinds.positions.added.probes import of_table
from selfattn.doctor.kinds.positions.added.seen import at_rest, goes_on
from selfattn.doctor.kinds.positions.added.waves import of_waves
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

TYPICAL = numbers(7, 11, seed=5)  # when there is no patient, as in tests


def for_table(table: Tensor) -> Exercise:
    """The exercise of adding this very table, (rows, d)."""
    return Exercise(
        "positions",
        asks=BATCH_AXIS.asks,
        solution=partial(add_positions, table=table),
        probes=of_table(table),
        mistakes=tuple(
            replace(known, answer=partial(known.answer, table=table))
            for known in MISTAKES
        ),
        optional=TYPES,
        deviations=tuple(of_waves(table)),
    )


def of(thing: Any, facts: Facts) -> Exercise:
    """The exercise of adding its table, and of dropping in training."""
    made = for_table(facts.get("table", TYPICAL))
    call = adapt(at_rest(thing), facts)
    if thing is not None and goes_on(call, facts.get("table", TYPICAL)):
        kept = tuple(p for p in made.probes if not p.refused)
        made = replace(made, probes=kept)
    return with_dropout(made, facts.get("dropout"))


KIND = Kind(
    "positions",
    does="of tokens, the same with a row of its table added to each",
    exercise=of,
    facts=FACTS,
    read=read,
    prepare=prepare,
    adapt=adapt,
)
