"""Functions that make causal masks, in whatever convention."""

import dataclasses
from typing import Any

from selfattn.doctor.exercise import Exercise, name_of
from selfattn.doctor.exercises.masks.causal import (
    CAUSAL,
    from_the_other_side,
)
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.masks.causal.calling import FACTS, adapt, read
from selfattn.doctor.kinds.masks.causal.mistakes import (
    CONVENTIONS,
    DEVIATIONS,
    MISTAKES,
)
from selfattn.doctor.patient import Facts

FROM_THE_OTHER_SIDE = name_of(from_the_other_side)
REFERENCE = dataclasses.replace(
    CAUSAL,
    name="causal-mask",
    mistakes=MISTAKES,
    deviations=DEVIATIONS,
    optional={
        "length": "another number of keys than of queries",
        "early": "more queries than keys",
        "rowless": "no queries at all",
    },
    conventions=CONVENTIONS,
)

# Strictly below the diagonal, True rather allows too little than forbids.
TURNED = dataclasses.replace(
    REFERENCE,
    mistakes=tuple(
        known for known in MISTAKES if known.name != FROM_THE_OTHER_SIDE
    ),
)


def held_to(thing: Any, facts: Facts) -> Exercise:
    """The exercise with the names that are likely, if nobody told more."""
    turned = facts.get("mask") in ("block", "zeros")
    return TURNED if turned and not facts.get("told") else REFERENCE


KIND = Kind(
    "causal-mask",
    does="of n_q and n_k, or of n, a table: who may look at whom",
    exercise=held_to,
    facts=FACTS,
    read=read,
    adapt=adapt,
)
