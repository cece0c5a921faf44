"""What may be said as a fact of which there are too many values to list.

Without it, what cannot be would be computed with, and whatever came of that
be blamed on the patient.
"""

import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from selfattn.signatures import shown


class Saying(NamedTuple):
    """Which values a fact may have, in words and as a question."""

    words: str
    fits: Callable[[Any], bool]


def is_number(value: Any) -> bool:
    """Whether something is a finite number, and not True or False.

    A whole number may be too large for a tensor, or a float, and is none then.
    """
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    if isinstance(value, int):
        return is_whole(value)
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def is_whole(value: Any) -> bool:
    """Whether something is a whole number that a tensor can hold and count."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and abs(value) < 2**62


def is_count(value: Any) -> bool:
    """Whether something is a whole number, at least 1."""
    return is_whole(value) and value >= 1


def is_name(value: Any) -> bool:
    """Whether something is a name, with dots for parts of parts."""
    return isinstance(value, str) and all(
        word.isidentifier() or word.isdecimal() for word in value.split(".")
    )


def are_names(value: Any) -> bool:
    """Whether something is a list of names."""
    return isinstance(value, list | tuple) and all(map(is_name, value))


def names_for(*ours: str) -> Saying:
    """The names that a patient has for what has these names here."""

    def fits(value: Any) -> bool:
        return isinstance(value, Mapping) and all(
            name in ours
            and (theirs is None or is_name(theirs) or are_names(theirs))
            for name, theirs in value.items()
        )

    return Saying(f"a dict of names for {', '.join(ours)}", fits)


def some_of(letters: str) -> Saying:
    """Some of a few things that have a letter each, none of them twice."""

    def fits(value: Any) -> bool:
        listed = isinstance(value, str | list | tuple) and len(value) > 0
        if not listed or any(one not in [*letters] for one in value):
            return False
        return len({*value}) == len(value)

    return Saying(f"some of {', '.join(letters)}", fits)


def are_arguments(value: Any) -> bool:
    """Whether something is a dict of arguments by their names."""
    named = isinstance(value, Mapping)
    return named and all(isinstance(name, str) for name in value)


def is_bend(value: Any) -> bool:
    """Whether something is a network's maps, with what bends between."""
    if not isinstance(value, list | tuple) or len(value) != 3:
        return False
    first, bend, last = value
    return are_names([first, last]) and (is_name(bend) or callable(bend))


COUNT = Saying("a whole number, at least 1", is_count)
WHOLE = Saying("a whole number", is_whole)
ONE_OR_TWO = Saying("1 or 2", lambda x: is_whole(x) and x in (1, 2))
NUMBER = Saying("a finite number", is_number)
ABOVE_ZERO = Saying(
    "a finite number above 0", lambda x: is_number(x) and x > 0
)
AT_LEAST_ONE = Saying(
    "a finite number, at least 1", lambda x: is_number(x) and x >= 1
)
LENGTH = Saying(
    "a whole number from 1 to 4096", lambda x: is_count(x) and x <= 4096
)
WIDTH = Saying(
    "a whole number from 1 to 65536", lambda x: is_count(x) and x <= 65536
)
PART = Saying(
    "a number above 0, at most 1", lambda x: is_number(x) and 0 < x <= 1
)
SHARE = Saying("a number from 0 to 1", lambda x: is_number(x) and 0 <= x <= 1)
FLAG = Saying("True or False", lambda x: isinstance(x, bool))
FUNCTION = Saying("a function", callable)
WRITTEN = Saying("a function of it, and of what it is called with", callable)
NAME = Saying("a name", is_name)
NAMES = Saying("a list of names", are_names)
BENT = Saying("a map's name, a bend or its name, and a map's name", is_bend)
OF_PARTS = NAME, NAMES, BENT  # what names parts of a thing
ARGUMENTS = Saying("a dict of arguments by their names", are_arguments)
TABLE = Saying(
    "a tensor with two axes", lambda x: isinstance(x, Tensor) and x.ndim == 2
)
WAY_TOLD = Saying(
    "'offset' or 'positions'",
    lambda x: isinstance(x, str) and x in ("offset", "positions"),
)
ORDER = Saying(
    "q, k and v in some order, such as 'kqv'",
    lambda x: isinstance(x, str) and sorted(x) == ["k", "q", "v"],
)


def types_in(said: Any, known: tuple[str, ...]) -> list[str]:
    """Number types by their names; a single one needs no list.

    Raises:
        ValueError: if it is none of those, or if there is none.
    """
    single = isinstance(said, str | torch.dtype)
    listed = [said] if single else said
    if not isinstance(listed, list | tuple | set | frozenset):
        listed = []
    names = [
        str(one).removeprefix("torch.")
        for one in listed
        if isinstance(one, str | torch.dtype)
    ]
    if not names or len(names) < len(listed) or not {*names} <= {*known}:
        raise ValueError(
            f"dtypes must be one or several of {', '.join(known)}, but it is "
            f"{shown(said)}"
        )
    return names
