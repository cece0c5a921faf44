"""How one of a class is made: of numbers, or of its own configuration."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from torch import nn

from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.layer.parts import HEADS, MODEL, WIDTHS
from selfattn.doctor.patient import Facts

D_MODEL = 12  # for classes: what three heads divide, and is no prime


def instance(thing: Any, told: Facts) -> nn.Module:
    """The module itself, or one of the class that was handed over."""
    if isinstance(thing, nn.Module):
        return thing
    if not isinstance(thing, type) or not issubclass(thing, nn.Module):
        raise UnclearError(
            "A module is asked for, or its class. If it is a function of q, "
            "k and v, its kind is “attention”."
        )
    return thing(**arguments(thing, told))


def arguments(thing: type, told: Facts) -> dict[str, Any]:
    """What to make one of a class with."""
    chosen = dict(told.get("make") or {})
    for name, parameter in inspect.signature(thing).parameters.items():
        guess = configured(parameter.annotation) or guessed(name)
        needed = parameter.default is parameter.empty
        if (
            name in chosen
            or not needed
            or parameter.kind.name.startswith("VAR")
        ):
            continue
        if guess is None:
            raise UnclearError(
                f"To make one, {thing.__name__} needs {name!r}. Say "
                f"make={{{name!r}: …}}, or hand over a module."
            )
        chosen[name] = guess
    return chosen


def is_rest(parameter: inspect.Parameter) -> bool:
    """Whether it is *args or **kwargs."""
    return parameter.kind.name.startswith("VAR")


def configured(asked: Any) -> Any:
    """A configuration as it is by default; None if none is asked for.

    Args:
        asked: what a parameter is said to be, perhaps a dataclass.
    """
    if not (isinstance(asked, type) and dataclasses.is_dataclass(asked)):
        return None
    # A field without a default has "missing" for both.
    given = [
        field.default is not field.default_factory
        for field in dataclasses.fields(asked)
        if field.init
    ]
    make: Callable[[], Any] = asked
    return make() if all(given) else None


def guessed(name: str) -> Any:
    """What to give to a constructor for a parameter of this name."""
    if name in HEADS:
        return 3
    if name in WIDTHS:
        return D_MODEL // 3
    if name in (*MODEL, "d_out", "d_context", "context_dim"):
        return D_MODEL
    if "dropout" in name:
        return 0.0
    long = ("context_length", "block_size", "max_len", "max_seq_len")
    return 64 if name in long else None
