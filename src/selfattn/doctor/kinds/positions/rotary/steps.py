"""Rotations in steps, and what is done otherwise at each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations.design import Deviation, pairs, singles
from selfattn.doctor.exercise import Mistake, mistake
from selfattn.doctor.exercises.positions import rope as names
from selfattn.doctor.kinds.positions import waves
from selfattn.doctor.kinds.positions.rotary import mistakes
from selfattn.doctor.kinds.positions.rotary.partners import (
    CROSSED,
    Two,
    halves,
    neighbours,
)

Form = Callable[..., Tensor]  # of a, b, cos and sin


@dataclass(frozen=True)
class Turn:
    """How each step is done; `turned` takes them in this order."""

    dtype: torch.dtype | None  # of the angles; None for that of x
    start: Callable[[int], int]  # of the offset
    axis: Callable[[int], int]  # of the number of axes: where tokens are
    exponent: waves.Exponent
    base: float
    lay: Callable[[Tensor], Two]  # angles of the pairs' firsts and seconds
    split: Callable[[Tensor], Two]
    cross: Callable[[Tensor], Two] | None  # partners, if they are others
    first: Form
    second: Form
    join: Callable[[Tensor, Tensor], Tensor]


@mistake
def one_sign_is_wrong():
    """It is no rotation: lengths change.

    Cause: Both sines of a pair have one sign; so it is where rotate_half is
        (b, a), without a minus.
    Cure: a cos - b sin, and a sin + b cos.
    Chapter: positions
    """


@mistake
def features_confused():
    """It is no rotation: of a pair, one feature is made as the other.

    Cause: In one of the two lines a and b, or cos and sin, are exchanged.
    Cure: a cos - b sin, and a sin + b cos.
    Chapter: positions
    """


@mistake
def sine_and_cosine_exchanged():
    """It turns by a right angle too much, or the other way.

    Cause: The sine stands where the cosine should, and the cosine where the
        sine should.
    Cure: a cos - b sin, and a sin + b cos.
    Chapter: positions
    """


@mistake
def one_of_each_pair_left():
    """It is no rotation: of each pair, one feature stays as it was.

    Cause: Only one of the two lines is computed, or assigned.
    Cure: a cos - b sin, and a sin + b cos.
    Chapter: positions
    """


@mistake
def cosines_alone():
    """It is no rotation: position 0 mixes the two features of a pair.

    Cause: Both waves are cosines.
    Cure: a cos - b sin, and a sin + b cos.
    Chapter: positions
    """


def side_by_side(a: Tensor, b: Tensor) -> Tensor:
    """The pairs, flattened."""
    return torch.stack((a, b), dim=-1).flatten(-2)


def behind(a: Tensor, b: Tensor) -> Tensor:
    """All firsts, then all seconds."""
    return torch.cat((a, b), dim=-1)


USUAL = Turn(
    dtype=torch.float64,
    start=lambda offset: offset,
    axis=lambda axes: -2,
    exponent=waves.exponent,
    base=waves.BASE,
    lay=lambda angle: (angle, angle),
    split=neighbours,
    cross=None,
    first=lambda a, b, cos, sin: a * cos - b * sin,
    second=lambda a, b, cos, sin: a * sin + b * cos,
    join=side_by_side,
)


def turned(steps: Turn, x: Tensor, offset: int) -> Tensor:
    """A rotation by its steps."""
    axis, d = steps.axis(x.ndim), x.shape[-1]
    start, dtype = steps.start(offset), steps.dtype or x.dtype
    place = torch.arange(start, start + x.shape[axis]).to(dtype)
    f = torch.arange(0, d, 2).to(dtype)
    angle = place[:, None] * steps.base ** -steps.exponent(f, d)
    shape = [1] * (x.ndim - 1) + [angle.shape[-1]]
    shape[axis] = len(place)
    (of_first, of_second), (a, b) = steps.lay(angle), steps.split(x)
    of_a, of_b = (b, a) if steps.cross is None else steps.cross(x)
    waves_of = [
        [wave.to(x.dtype).view(shape) for wave in (one.cos(), one.sin())]
        for one in (of_first, of_second)
    ]
    made = (
        steps.first(a, of_a, *waves_of[0]),
        steps.second(of_b, b, *waves_of[1]),
    )
    return steps.join(*made)


def interleaved(angle: Tensor) -> Two:
    """Angles laid out for neighbours, cut into halves."""
    return halves(angle.repeat_interleave(2, dim=-1))


def repeated(angle: Tensor) -> Two:
    """Angles laid out for halves, taken by neighbours."""
    return neighbours(torch.cat((angle, angle), dim=-1))


NAMES = {
    "two missing": names.the_two_is_missing,
    "reaching": names.the_two_is_missing,
    "faster": names.faster_and_faster,
    "one speed": names.one_speed_for_all,
    "two twice": names.exponent_doubled,
    "one on": waves.one_pair_on,
    "reverse": waves.pairs_in_reverse,
}
FORMS: tuple[tuple[Any, dict[str, Form]], ...] = (
    (
        names.turned_the_other_way,
        {
            "first": lambda a, b, c, s: a * c + b * s,
            "second": lambda a, b, c, s: b * c - a * s,
        },
    ),
    (names.mirrored, {"second": lambda a, b, c, s: a * s - b * c}),
    (
        names.mirrored,
        {
            "first": lambda a, b, c, s: a * c + b * s,
            "second": lambda a, b, c, s: a * s - b * c,
        },
    ),
    (one_sign_is_wrong, {"first": lambda a, b, c, s: a * c + b * s}),
    (one_sign_is_wrong, {"second": lambda a, b, c, s: b * c - a * s}),
    (
        mistakes.sines_without_cosines,
        {
            "first": lambda a, b, c, s: -b * s,
            "second": lambda a, b, c, s: a * s,
        },
    ),
    (
        mistakes.sines_without_cosines,
        {
            "first": lambda a, b, c, s: (a - b) * s,
            "second": lambda a, b, c, s: (a + b) * s,
        },
    ),
    (
        cosines_alone,
        {
            "first": lambda a, b, c, s: (a - b) * c,
            "second": lambda a, b, c, s: (a + b) * c,
        },
    ),
    (
        names.a_table_multiplied,
        {
            "first": lambda a, b, c, s: a * c,
            "second": lambda a, b, c, s: b * c,
        },
    ),
    (
        names.a_table_multiplied,
        {
            "first": lambda a, b, c, s: a * c,
            "second": lambda a, b, c, s: b * s,
        },
    ),
    (
        sine_and_cosine_exchanged,
        {
            "first": lambda a, b, c, s: a * s - b * c,
            "second": lambda a, b, c, s: a * c + b * s,
        },
    ),
    (
        sine_and_cosine_exchanged,
        {
            "first": lambda a, b, c, s: a * s + b * c,
            "second": lambda a, b, c, s: b * s - a * c,
        },
    ),
    (features_confused, {"second": lambda a, b, c, s: a * c + b * s}),
    (features_confused, {"first": lambda a, b, c, s: a * s - b * c}),
    (features_confused, {"first": lambda a, b, c, s: b * c - a * s}),
    (features_confused, {"second": lambda a, b, c, s: b * s + a * c}),
    (features_confused, {"second": lambda a, b, c, s: a * c - b * s}),
    (
        names.updated_in_between,
        {"second": lambda a, b, c, s: (a * c - b * s) * s + b * c},
    ),
    (
        names.updated_in_between,
        {
            "first": lambda a, b, c, s: a * c - b * c * s,
            "second": lambda a, b, c, s: a * c * s + b * c,
        },
    ),
    (one_of_each_pair_left, {"second": lambda a, b, c, s: b}),
    (one_of_each_pair_left, {"first": lambda a, b, c, s: a}),
)
STARTS: tuple[tuple[Any, Callable[[int], int]], ...] = (
    (names.offset_ignored, lambda offset: 0),
    (names.counted_from_one, lambda offset: offset + 1),
    (mistakes.offset_off_by_one, lambda offset: offset - 1),
    (mistakes.offset_off_by_one, lambda offset: offset + (offset > 0)),
    (mistakes.offset_off_by_one, lambda offset: offset - (offset > 0)),
    (names.offset_subtracted, lambda offset: -offset),
)
KNOWN = (
    *(Deviation(dict(forms), name) for name, forms in FORMS),
    *(Deviation({"start": one}, name) for name, one in STARTS),
    *waves.exponents(NAMES),
    *waves.bases(mistakes.base_of_a_thousand),
    Deviation({"split": halves, "join": behind}, names.halves_paired),
    Deviation({"join": behind}, names.sorted_into_halves),
    Deviation({"split": halves}, names.halves_paired),
    *(
        Deviation({"cross": one}, names.half_of_each_convention)
        for one in CROSSED
    ),
    Deviation({"lay": interleaved}, names.half_of_each_convention),
    Deviation({"lay": repeated}, names.half_of_each_convention),
    Deviation(
        {"split": halves, "join": behind, "lay": interleaved},
        names.half_of_each_convention,
    ),
    Deviation(
        {"axis": lambda axes: 1 if axes > 3 else -2},
        names.second_axis_is_time,
    ),
    Deviation({"axis": lambda axes: 0}, names.first_axis_is_time),
    Deviation({"dtype": None}, names.angles_in_low_precision),
)


def by(base: float) -> Callable[[Callable[[Turn], Turn]], Any]:
    """What makes a wrong rotation, of what is done otherwise."""

    def answer(change: Callable[[Turn], Turn]) -> Callable[..., Tensor]:
        steps = change(replace(USUAL, base=base))
        return lambda x, offset: turned(steps, x, offset)

    return answer


def second(base: float = waves.BASE) -> Any:
    """Two at once."""
    return pairs(KNOWN, by(base), waves.HARMLESS, every=True)


def of_base(base: float) -> tuple[Mistake, ...]:
    """Each thing that is done otherwise, where the base is another."""
    usual = Deviation({"base": waves.BASE}, waves.another_base)
    return singles((*KNOWN, usual), by(base))


SINGLES = singles(KNOWN, by(waves.BASE))
