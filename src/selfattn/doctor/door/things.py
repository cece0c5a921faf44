"""What a module makes itself, and does not merely import."""

import contextlib
import dis
import enum
import functools
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import nn

NO_PATIENTS = (BaseException, enum.Enum, tuple, dict, list, str)


class Thing(NamedTuple):
    """A function, a class or a module, under its name."""

    name: str
    thing: Any
    used_by: tuple[str, ...] = ()  # of a function, what else calls it


def things_in(module: types.ModuleType) -> list[Thing]:
    """All that may be examined, each once, parts behind what uses them.

    A class of which the module keeps an instance is not listed beside it:
    whoever wrote it has made one that fits. Neither are tests, and what is
    private by its name.
    """
    found: dict[int, Thing] = {}
    for name, thing in vars(module).items():
        if not isinstance(name, str):  # by its `globals()`
            continue
        private = name.startswith(("_", "test_", "Test"))
        if not private and may_be_own(thing, module.__name__):
            found.setdefault(id(thing), Thing(name, thing))
    # By identity: an instance of a dataclass has no hash, others have one, or
    # a comparison, that raises.
    made = {id(type(one.thing)) for one in found.values()}
    return with_users(
        [one for one in found.values() if id(one.thing) not in made]
    )


def with_users(found: list[Thing]) -> list[Thing]:
    """The same, each function with the others whose code has its name.

    What is used by nothing comes first, so that it is examined before its
    parts.
    """
    told = [
        one._replace(used_by=tuple(users(one, found)))
        if type(one.thing) is types.FunctionType
        else one
        for one in found
    ]
    return sorted(told, key=lambda one: bool(one.used_by))


def users(part: Thing, found: list[Thing]) -> Iterator[str]:
    """The names of those that use a part, as far as they can be looked at."""
    for one in found:
        with contextlib.suppress(Exception, SystemExit):
            if one is not part and part.name in words_of(one.thing):
                yield one.name


def words_of(thing: Any) -> set[str]:
    """All names that the code of a function, or of a class and its methods,
    looks up in its module: not those of attributes, as in `F.softmax`.
    """
    if isinstance(thing, types.FunctionType):
        left = [thing.__code__]
    else:
        own = thing if isinstance(thing, type) else type(thing)
        methods = vars(own).values()
        left = [f.__code__ for f in methods if hasattr(f, "__code__")]
    names: set[str] = set()
    while left:
        code = left.pop()
        names |= {
            step.argval
            for step in dis.get_instructions(code)
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        }
        left += [x for x in code.co_consts if isinstance(x, types.CodeType)]
    return names


def may_be_own(thing: Any, module: str) -> bool:
    """The same as `is_own`; yes, if to look at the thing raises an error:
    whoever guesses what it is, will tell of that.
    """
    try:
        return is_own(thing, module)
    except (Exception, SystemExit):
        return True


def is_own(thing: Any, module: str) -> bool:
    """Whether a module has made a thing, and it is one to be called."""
    if isinstance(thing, type):
        own = thing.__module__ == module
        return own and not issubclass(thing, NO_PATIENTS) and is_called(thing)
    if isinstance(thing, types.FunctionType):
        return thing.__module__ == module
    if isinstance(thing, torch.jit.ScriptFunction):
        # Which does not say where it is from, but what it was made of does.
        made_of = getattr(thing, "_torchdynamo_inline", None)
        return getattr(made_of, "__module__", module) == module
    if isinstance(thing, nn.Module | functools.partial):
        return True
    return type(thing).__module__ == module and callable(thing)


def is_called(thing: type) -> bool:
    """Whether what a class makes can be called."""
    return issubclass(thing, nn.Module) or "__call__" in vars(thing)
