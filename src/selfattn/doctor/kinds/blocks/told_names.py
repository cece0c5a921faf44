"""What a block calls its texts and its masks, where somebody told."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, UnclearError
from selfattn.doctor.patient import Facts

TEXTS, MASKS = ("x", "context"), ("mask", "padding")


def fact(*texts: str) -> Fact:
    """That one may tell the names of these texts, and of its masks."""
    ours = (*texts, *MASKS)
    meaning = f"its names for {', '.join(ours)}"
    return Fact(meaning, saying=sayings.names_for(*ours))


def of(told: Facts, *ours: str) -> dict[str, str]:
    """Its names for these, of those that were told."""
    names = told.get("names") or {}
    return {name: names[name] for name in ours if names.get(name)}


def check(forward: Callable[..., Any], told: Facts) -> None:
    """Raise if it takes nothing under a name that was told.

    Raises:
        UnclearError: which says what it takes.
    """
    listed = inspect.signature(forward).parameters
    if any(p.kind is p.VAR_KEYWORD for p in listed.values()):
        return
    for ours, theirs in of(told, *TEXTS, *MASKS).items():
        if theirs not in listed:
            raise UnclearError(
                f"names says that {ours} is its {theirs!r}, and it takes "
                f"{', '.join(listed)}. Say one of these."
            )


def by_them(
    texts: Sequence[Tensor], told: Facts
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """The texts that go by their place, and those whose names were told."""
    names = of(told, *TEXTS)
    both = dict(zip(TEXTS, texts, strict=False))
    placed = [x for ours, x in both.items() if ours not in names]
    named = {names[ours]: x for ours, x in both.items() if ours in names}
    return placed, named
