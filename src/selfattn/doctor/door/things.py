"""What a module makes itself, and does not merely import."""

import enum
import functools
import types
from typing import Any, NamedTuple

from torch import nn

NO_PATIENTS = (BaseException, enum.Enum, tuple, dict, list, str)


class Thing(NamedTuple):
    """A function, a class or a module, under its name."""

    name: str
    thing: Any


def things_in(module: types.ModuleType) -> list[Thing]:
    """All that may be examined, in the order of the text, each once.

    A class of which the module keeps an instance is not listed beside it:
    whoever wrote it has made one that fits. Neither are tests, and what is
    private by its name.
    """
    found: dict[int, Thing] = {}
    for name, thing in vars(module).items():
        private = name.startswith(("_", "test_", "Test"))
        if not private and is_own(thing, module.__name__):
            found.setdefault(id(thing), Thing(name, thing))
    made = {type(one.thing) for one in found.values()}
    return [one for one in found.values() if one.thing not in made]


def is_own(thing: Any, module: str) -> bool:
    """Whether a module has made a thing, and it is one to be called."""
    if isinstance(thing, type):
        own = thing.__module__ == module
        return own and not issubclass(thing, NO_PATIENTS) and is_called(thing)
    if isinstance(thing, types.FunctionType):
        return thing.__module__ == module
    if isinstance(thing, nn.Module | functools.partial):
        return True
    return type(thing).__module__ == module and callable(thing)


def is_called(thing: type) -> bool:
    """Whether what a class makes can be called."""
    return issubclass(thing, nn.Module) or "__call__" in vars(thing)
