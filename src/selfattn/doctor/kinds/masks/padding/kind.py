"""Functions that make padding masks, of lengths or of tokens."""

import dataclasses
from typing import Any

from selfattn.doctor.exercise import Exercise, name_of
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.masks.padding.calling import (
    FACTS,
    adapt,
    of_lengths_alone,
    read,
)
from selfattn.doctor.kinds.masks.padding.mistakes import (
    MISTAKES,
    padded_on_the_other_side,
)
from selfattn.doctor.kinds.masks.padding.probes import (
    OPTIONAL,
    OPTIONAL_ALONE,
    PROBES,
    PROBES_ALONE,
)
from selfattn.doctor.patient import Facts
from selfattn.masks import padding_mask

ON_THE_LEFT = name_of(padded_on_the_other_side)
REFERENCE = Exercise(
    "padding-mask",
    asks="True for the real tokens of each text, (batch, 1, 1, n)",
    solution=padding_mask,
    probes=PROBES,
    mistakes=MISTAKES,
    optional=OPTIONAL,
)
ALONE = dataclasses.replace(
    REFERENCE, probes=PROBES_ALONE, optional=OPTIONAL_ALONE
)


def held_to(thing: Any, facts: Facts) -> Exercise:
    """The exercise; of lengths alone a width is asked only on promise."""
    return ALONE if of_lengths_alone(facts) else REFERENCE


KIND = Kind(
    "padding-mask",
    does="of lengths and n, or of tokens, which tokens are real",
    exercise=held_to,
    facts=FACTS,
    read=read,
    adapt=adapt,
    meant={ON_THE_LEFT: "side='left'"},
    promised_by={ON_THE_LEFT: "side"},
)
