"""Mechanisms that save work, by the mask or the kernel that they claim."""

from functools import partial

from selfattn.doctor.kind import Examples, Kind
from selfattn.doctor.kinds.efficient import exercise
from selfattn.doctor.kinds.efficient.calling import (
    FACTS,
    MEANT,
    PROMISED_BY,
    adapt,
    fallback,
    read,
)
from selfattn.doctor.kinds.efficient.seen_tables import claims
from selfattn.doctor.kinds.efficient.untold_facts import perhaps
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import elu_plus_one, linear_attention
from selfattn.efficient.performer import performer_attention
from selfattn.efficient.window import sliding_window_attention


def examples() -> Examples:
    """Healthy mechanisms, one for each sort of claim."""
    window = partial(sliding_window_attention, window=7)
    return {
        "exact": (flash_attention, {}),
        "under a mask": (window, {"window": 7}),
        "with a kernel": (linear_attention, {"kernel": elu_plus_one}),
        "of its own": (performer_attention, {"formula": "own"}),
        "of its own, causal": (
            partial(performer_attention, causal=True),
            {"formula": "own", "causal": True},
        ),
    }


KIND = Kind(
    "efficient",
    does="attention that saves work: exact, under a mask, or with a kernel",
    exercise=exercise.of,
    facts=FACTS,
    read=read,
    adapt=adapt,
    as_used=True,
    fallback=fallback,
    examples=examples,
    meant=MEANT,
    promised_by=PROMISED_BY,
    perhaps=perhaps,
    claims=claims,
)
