"""Softmax in steps, and what is done otherwise at each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations.design import (
    Deviation,
    pairs,
    singles,
    unchanged,
)
from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.dot_product import softmax as names
from selfattn.doctor.kinds.softmax import mistakes

Step = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Softmax:
    """How each step is done; `weights` takes them in this order."""

    shift: Step
    power: Step
    total: Step  # of the powers: what they are divided by
    leave: Step


@mistake
def scores_shared_out():
    """Your weights are shares of the scores themselves.

    Cause: There is no exp: the scores are divided by their sum.
    Cure: exp first.
    Chapter: dot_product
    """


@mistake
def sigmoid_instead_of_softmax():
    """Your rows do not sum to one.

    Cause: Each score becomes a weight by itself, by a sigmoid.
    Cure: exp, divided by the sum of the row.
    Chapter: dot_product
    """


USUAL = Softmax(
    shift=lambda s: s - s.amax(dim=-1, keepdim=True),
    power=torch.exp,
    total=lambda e: e.sum(dim=-1, keepdim=True),
    leave=unchanged,
)


def weights(steps: Softmax, scores: Tensor) -> Tensor:
    """Weights of scores, step by step."""
    powers = steps.power(steps.shift(scores))
    return steps.leave(powers / steps.total(powers))


def axis_of(x: Tensor, axis: int) -> int:
    """An axis, or the last, where there are not so many."""
    return axis if -x.ndim <= axis < x.ndim else -1


SHIFTS: tuple[tuple[Any, Step], ...] = (
    (names.overflows, unchanged),
    (
        names.maximum_over_the_wrong_axis,
        lambda s: s - s.amax(dim=axis_of(s, -2), keepdim=True),
    ),
    (
        names.maximum_over_the_wrong_axis,
        lambda s: s - s.amax(dim=0, keepdim=True),
    ),
    (names.one_maximum_for_the_whole_table, lambda s: s - s.max()),
    (names.mean_subtracted, lambda s: s - s.mean(dim=-1, keepdim=True)),
    (names.minimum_subtracted, lambda s: s - s.amin(dim=-1, keepdim=True)),
    (
        names.largest_absolute_value,
        lambda s: s - s.abs().amax(dim=-1, keepdim=True),
    ),
    (
        names.divided_by_the_maximum,
        lambda s: s / s.amax(dim=-1, keepdim=True),
    ),
    (
        mistakes.scores_taken_from_the_maximum,
        lambda s: s.amax(dim=-1, keepdim=True) - s,
    ),
    (mistakes.scores_taken_from_the_maximum, lambda s: -s),
    (names.clamped, lambda s: s.clamp(-80, 80)),
    (names.clamped_from_above, lambda s: s.clamp(max=80)),
)
POWERS: tuple[tuple[Any, Step], ...] = (
    (names.powers_of_two, torch.exp2),
    (scores_shared_out, unchanged),
)
TOTALS: tuple[tuple[Any, Step], ...] = (
    (
        names.sum_over_the_wrong_axis,
        lambda e: e.sum(dim=axis_of(e, -2), keepdim=True),
    ),
    (names.sum_over_the_wrong_axis, lambda e: e.sum(dim=0, keepdim=True)),
    (
        names.sum_over_the_wrong_axis,
        lambda e: e.sum(dim=axis_of(e, 1), keepdim=True),
    ),
    (names.sum_over_the_whole_table, lambda e: e.sum()),
    (names.exponentials_not_divided, torch.ones_like),
    (
        names.exponentials_not_divided,
        lambda e: torch.full_like(e, e.shape[-1]),
    ),
)


def over(axis: int) -> dict[str, Step]:
    """Maximum and sum along another axis."""
    return {
        "shift": lambda s: s - s.amax(dim=axis_of(s, axis), keepdim=True),
        "total": lambda e: e.sum(dim=axis_of(e, axis), keepdim=True),
    }


KNOWN = (
    *(Deviation({"shift": one}, name) for name, one in SHIFTS),
    *(Deviation({"power": one}, name) for name, one in POWERS),
    *(Deviation({"total": one}, name) for name, one in TOTALS),
    Deviation(over(-2), names.wrong_axis),
    Deviation(over(0), mistakes.over_the_first_axis),
    Deviation(over(1), names.wrong_axis),
    Deviation({"leave": torch.log}, names.logarithm_returned),
    Deviation(
        {"shift": unchanged, "power": torch.sigmoid, "total": torch.ones_like},
        sigmoid_instead_of_softmax,
    ),
    Deviation(
        {"leave": lambda w: w.bfloat16().to(w.dtype)},
        mistakes.computed_in_half_precision,
    ),
    Deviation(
        {"leave": lambda w: w.half().to(w.dtype)},
        mistakes.computed_in_half_precision,
    ),
)


def answer(change: Callable[[Softmax], Softmax]) -> Callable[..., Tensor]:
    """A wrong softmax, of what is done otherwise."""
    steps = change(USUAL)
    return lambda scores: weights(steps, scores)


def second() -> Any:
    """Two at once."""
    return pairs(KNOWN, answer, every=True)


SINGLES = singles(KNOWN, answer)
