"""Waves of positions in steps: tables are made of them, and rotations.

Both families share what is done otherwise with a frequency or a position;
each has its own names for that.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations.design import Deviation
from selfattn.doctor.exercise import mistake

BASE = 10_000.0
Names = Mapping[str, Any]
Exponent = Callable[[Tensor, int], Tensor]  # of features 0, 2, 4 …, and d


@mistake
def another_base():
    """Right for the first pair; the others turn too fast, or too slowly.

    Cause: The base is another number than 10000.
    Cure: 10000, or the base that your weights were trained with.
    Chapter: positions
    """


@mistake
def one_pair_on():
    """The first pair turns as fast as the second should, and so on.

    Cause: The pairs are counted from 1.
    Cure: 2i/d, with i from 0.
    Chapter: positions
    """


@mistake
def pairs_in_reverse():
    """The first pair turns most slowly, and the last one fastest.

    Cause: The frequencies are listed from the slowest on.
    Cure: The first pair turns by one radian a position.
    Chapter: positions
    """


def exponent(f: Tensor, d: int) -> Tensor:
    """2i/d for pair i, whose first feature is f."""
    return f / d


def exponents(names: Names) -> list[Deviation]:
    """Other exponents of the base."""
    listed: tuple[tuple[str, Exponent], ...] = (
        ("two missing", lambda f, d: f / 2 / d),
        ("reaching", lambda f, d: f / max(d - 2, 1)),
        ("faster", lambda f, d: -f / d),
        ("one speed", lambda f, d: 0 * f),
        ("two twice", lambda f, d: 2 * f / d),
        ("one on", lambda f, d: (f + 2) / d),
        ("reverse", lambda f, d: (d - 2 - f) / d),
        ("one on", lambda f, d: (f + 1) / d),
        ("two missing", lambda f, d: f / 2 / max(d - 1, 1)),
        ("reaching", lambda f, d: f / max(d - 1, 1)),
    )
    return [
        Deviation({"exponent": one}, names[key])
        for key, one in listed
        if key in names
    ]


def bases(thousand: Any) -> list[Deviation]:
    """Other bases."""
    others = (100.0, 10.0, 1e5, 5e5, 1e6, 2.718281828459045)
    return [
        Deviation({"base": 1000.0}, thousand),
        *(Deviation({"base": one}, another_base) for one in others),
    ]


# What is rounded otherwise, and is no mistake in float32.
HARMLESS = (Deviation({"dtype": torch.float32}, None),)
