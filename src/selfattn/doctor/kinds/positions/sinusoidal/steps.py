"""Tables of positions in steps, and what is done otherwise at each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations.design import Deviation, pairs, singles
from selfattn.doctor.exercise import Mistake, mistake
from selfattn.doctor.exercises.positions import sinusoidal as names
from selfattn.doctor.kinds.positions import waves
from selfattn.doctor.kinds.positions.sinusoidal import mistakes


@dataclass(frozen=True)
class Table:
    """How each step is done; `made` takes them in this order."""

    dtype: torch.dtype  # of the angles
    place: Callable[[Tensor], Tensor]  # of the numbers of the rows
    own: bool  # whether each feature has an angle of its own
    exponent: waves.Exponent
    base: float
    wave: Callable[[Tensor], Tensor]  # of the angles of all features


@mistake
def mirrored():
    """Your sines have the wrong sign.

    Cause: The angle, or the position, is negative.
    Cure: sin(p / 10000^(2i/d)), with a plus.
    Chapter: positions
    """


@mistake
def positions_shrunk():
    """All waves are too long, as if the text were shorter than it is.

    Cause: The positions are divided by the number of rows, or by another.
    Cure: 0, 1, 2 and so on.
    Chapter: positions
    """


def alternating(angle: Tensor) -> Tensor:
    """Sines of the even features' angles, cosines of the odd ones'."""
    return both(angle.sin(), angle.cos())


def both(even: Tensor, odd: Tensor) -> Tensor:
    """Even features of the one, odd ones of the other."""
    first = torch.arange(even.shape[-1]) % 2 == 0
    return torch.where(first, even, odd)


def parted(table: Tensor) -> Tensor:
    """All even features, then all odd ones."""
    return torch.cat((table[..., 0::2], table[..., 1::2]), dim=-1)


USUAL = Table(
    dtype=torch.float64,
    place=lambda p: p,
    own=False,
    exponent=waves.exponent,
    base=waves.BASE,
    wave=alternating,
)


def made(steps: Table, n: int, d_model: int) -> Tensor:
    """The table of some steps, float32."""
    p = steps.place(torch.arange(n, dtype=steps.dtype))[:, None]
    f = torch.arange(d_model, dtype=steps.dtype)
    f = f if steps.own else 2 * (f // 2)
    angle = p * steps.base ** -steps.exponent(f, d_model)
    return steps.wave(angle).float()


def sines_first(angle: Tensor) -> Tensor:
    """All sines, then all cosines."""
    return parted(alternating(angle))


NAMES = {
    "two missing": names.the_two_is_missing,
    "reaching": names.reaching_the_base,
    "faster": names.faster_and_faster,
    "one speed": mistakes.position_divided_as_a_whole_number,
    "two twice": names.exponent_doubled,
    "one on": waves.one_pair_on,
    "reverse": waves.pairs_in_reverse,
}
WAVES: tuple[tuple[Any, Callable[[Tensor], Tensor]], ...] = (
    (mistakes.sines_alone, torch.sin),
    (mistakes.cosines_alone, torch.cos),
    (names.sine_and_cosine_exchanged, lambda a: both(a.cos(), a.sin())),
    (names.sines_first, sines_first),
    (mirrored, lambda a: both(-a.sin(), a.cos())),
    (mistakes.degrees, lambda a: alternating(torch.deg2rad(a))),
    (names.sines_first, lambda a: parted(both(a.cos(), a.sin()))),
)
PLACES: tuple[tuple[Any, Callable[[Tensor], Tensor]], ...] = (
    (names.counted_from_one, lambda p: p + 1),
    (names.counted_from_one, lambda p: p - 1),
    (positions_shrunk, lambda p: p / max(len(p), 1)),
    (positions_shrunk, lambda p: p / max(len(p) - 1, 1)),
)
KNOWN = (
    Deviation({"own": True}, names.every_feature_its_own_angle),
    Deviation(
        {"own": True, "exponent": lambda f, d: 2 * f / d},
        names.every_feature_its_own_angle,
    ),
    *waves.exponents(NAMES),
    *waves.bases(names.base_of_a_thousand),
    *(Deviation({"wave": one}, name) for name, one in WAVES),
    *(Deviation({"place": one}, name) for name, one in PLACES),
)


def by(usual: Table) -> Callable[[Callable[[Table], Table]], Any]:
    """What makes a wrong table, of what is done otherwise."""

    def answer(change: Callable[[Table], Table]) -> Callable[..., Tensor]:
        steps = change(usual)
        return lambda n, d_model: made(steps, n, d_model)

    return answer


def second(usual: Table = USUAL) -> Any:
    """Two at once."""
    return pairs(KNOWN, by(usual), waves.HARMLESS, every=True)


def beside(usual: Table) -> tuple[Mistake, ...]:
    """Each thing that is done otherwise than in another usual table."""
    base = Deviation({"base": waves.BASE}, waves.another_base)
    return singles((*KNOWN, base), by(usual))


TO_THE_END = replace(USUAL, exponent=lambda f, d: f / max(d - 2, 1))
SINGLES = singles(KNOWN, by(USUAL))
