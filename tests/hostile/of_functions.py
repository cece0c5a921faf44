"""Hostile functions: what they return is nothing, or not what was asked for.

A function that a callable is given may come from anywhere: a feature map
that loses an axis, a sublayer that returns a tuple, a finished module where
one is to be made.
"""

import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from hostile.feeding import alternatives
from hostile.of_types import kind_of
from hostile.trials import Case, nothing_to_compare
from hostile.verdicts import Trial


def nothing(*args: Any, **options: Any) -> None:
    """It forgot to return."""


def two_results(*args: Any, **options: Any) -> Any:
    """It returns more than one thing."""
    return args, None


def a_number(*args: Any, **options: Any) -> float:
    """It returns no tensor."""
    return 0.5


def a_sum(x: Any, *args: Any, **options: Any) -> Any:
    """It loses the axes."""
    return x.double().sum() if isinstance(x, torch.Tensor) else 3


def yes_and_no(x: Any, *args: Any, **options: Any) -> Any:
    """It returns no numbers."""
    return x > 0


ODD: tuple[Callable[..., Any], ...] = (
    *(nothing, two_results, a_number, a_sum, yes_and_no),
)
# Functions of which nothing is known but that they are called: any result is
# theirs, and is measured, shown or passed on.
ANYTHING = ("f", "thing", "clock", "answer")
# Numbers that are no sizes: far out, one may mean "all" or be refused, but in
# words, and without waiting for ever.
NO_SIZES = (
    *("window", "stride", "seed", "offset", "scale", "base", "eps"),
    *("prefix", "p", "temperature"),
)
FAR = (2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400)


def trials(case: Case) -> Iterator[Trial]:
    """Odd functions, odd factories, and numbers that are far out."""
    for name in case.call.target.parameters:
        hints = alternatives(case.call.target.hints.get(name))
        if makes_modules(hints):
            yield from factories(case, name)
        elif takes_a_function(case, name, hints):
            for odd in ODD:
                detail = f"{name} gives {odd.__name__}"
                yield case.nonsense("a function", detail, **{name: odd})
        if name in NO_SIZES:
            for far in FAR:
                call = case.call.having(**{name: far})
                detail = f"{name}={far:.3g}" if far < 2**70 else f"{name} huge"
                yield case.trial("a number", detail, call, nothing_to_compare)


def makes_modules(hints: tuple[Any, ...]) -> bool:
    """Whether it is a factory, by its annotation."""
    return any(
        args and args[-1] is nn.Module for args in map(typing.get_args, hints)
    )


def takes_a_function(case: Case, name: str, hints: tuple[Any, ...]) -> bool:
    """Whether it is called in this call, and what it returns is used."""
    target = case.call.target
    if name in ANYTHING or inspect.isclass(target.call):
        return False
    if name == "attend" and target.name.startswith("models."):
        return False  # it is put into a model, and called with that
    kinds = {kind_of(name, hint) for hint in hints}
    return "function" in kinds


def factories(case: Case, name: str) -> Iterator[Trial]:
    """What makes no module, or is one."""
    made = nn.Identity()
    yield case.nonsense("a function", f"{name} is one", **{name: made})
    for odd in (nothing, a_number, two_results):
        detail = f"{name} makes {odd.__name__}"
        yield case.nonsense("a function", detail, **{name: odd})
