"""To make one of a class, from nothing but the names of its arguments."""

import inspect
from typing import Any

from torch import nn

from selfattn.doctor.kinds.layer.constructing import (
    D_MODEL,
    configured,
    guessed,
    is_rest,
)

HIDDEN = ("ff", "hidden", "inner", "mlp", "intermediate")
LONG = ("max", "length", "room", "size_limit", "context", "positions")
FEW = ("kv", "group", "query", "layers", "depth", "n_blocks")
RATES = ("drop", "prob", "rate")


def made(thing: Any) -> Any:
    """The thing itself, or one of the class that it is; evaluated.

    Raises:
        Exception: whatever its constructor raises.
    """
    if isinstance(thing, type):
        thing = thing(**arguments(thing))
    return thing.eval() if isinstance(thing, nn.Module) else thing


def arguments(thing: type) -> dict[str, Any]:
    """What to make one of a class with: small numbers, by their names."""
    listed = inspect.signature(thing).parameters.items()
    return {
        name: configured(parameter.annotation) or a_number(name)
        for name, parameter in listed
        if parameter.default is parameter.empty and not is_rest(parameter)
    }


def a_number(name: str) -> Any:
    """What a number of this name may be; a width, if nothing is known.

    >>> a_number("n_heads"), a_number("d_ff"), a_number("features")
    (3, 24, 12)
    """
    known = guessed(name)
    if known is not None:
        return known
    low = name.lower()
    if any(word in low for word in RATES):
        return 0.0
    if any(word in low for word in HIDDEN):
        return 2 * D_MODEL
    if "heads" in low or any(word in low for word in FEW):
        return 3
    return 64 if any(word in low for word in LONG) else D_MODEL
