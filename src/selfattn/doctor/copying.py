"""Copies of what is examined, for calls that may change it.

Of some things Python makes no copy: a lock, an open file, a generator, a
result that is kept with what it came from. Who holds one has a copy none the
less, which shares it; of a result, it has the numbers.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from torch import Tensor, nn

T = TypeVar("T")
# What is copied by itself, or not at all.
SIMPLE = (str, bytes, int, float, complex, type, Tensor)


def copy_of(thing: T) -> T:
    """A deep copy of a thing, which shares what has none within.

    >>> from threading import Lock
    >>> held = {"lock": Lock(), "seen": [3]}
    >>> made = copy_of(held)
    >>> made["lock"] is held["lock"], made["seen"] is held["seen"]
    (True, False)

    Raises:
        Exception: whatever copying it raises, if not for what is within.
    """
    try:
        made = copy.deepcopy(thing)
    except Exception:  # the usual thing pays for no search
        made = copy.deepcopy(thing, instead_of_copies(thing))
    if isinstance(thing, nn.Module) and isinstance(made, nn.Module):
        uncover(made, thing)
    return made


def uncover(made: nn.Module, thing: nn.Module) -> None:
    """Take away what covers a part of a copy, and none of what was copied.

    PyTorch's layers of encoders and decoders hold a function called
    `activation` once they are copied, and a part of that name is not heard.
    """
    for mine, its in zip(made.modules(), thing.modules(), strict=False):
        for name in (mine._modules.keys() & vars(mine)) - vars(its).keys():
            del mine.__dict__[name]


def instead_of_copies(thing: Any) -> dict[int, Any]:
    """What a copy has for each part that has none, by the part's id."""
    seen: dict[int, Any] = {}
    inner = [part for part in within(thing, seen) if part is not thing]
    instead: dict[int, Any] = {id(seen): seen}  # as long as its ids are used
    tried: dict[int, Any] = {}
    # Those without parts first: where parts know of each other, to copy one
    # is to copy all.
    for part in sorted(inner, key=lambda part: bool(parts(part))):
        if isinstance(part, Tensor):
            tried[id(part)] = part  # no copy of its numbers, to see whether
            if not part.is_leaf:
                instead[id(part)] = part.detach().clone()
            continue
        try:
            copy.deepcopy(part, tried)
        except Exception:
            instead[id(part)] = tried[id(part)] = part
    return instead


def within(thing: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """All that is copied with a thing, the innermost first, and itself.

    ``seen`` keeps them, so that no other gets the id of one.
    """
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    for part in parts(thing):
        yield from within(part, seen)
    yield thing


def parts(thing: Any) -> list[Any]:
    """What a copy of a thing is made of, as Python's copying is told it."""
    if isinstance(thing, SIMPLE):
        return []
    if isinstance(thing, dict):
        return [*thing.keys(), *thing.values()]
    if isinstance(thing, list | tuple | set | frozenset):
        return [*thing]
    try:
        told = thing.__reduce_ex__(4)
    except Exception:
        return []
    if isinstance(told, str):  # the name of something that is shared
        return []
    return [
        [*one] if isinstance(one, Iterator) else one
        for one in told[1:]
        if one is not None
    ]


@contextmanager
def left_as_it_is(thing: T) -> Iterator[T]:
    """A copy of a thing; itself if it has none, with its modes put back."""
    try:
        mine = copy_of(thing)
    except Exception:
        mine = thing
    modules = thing.modules() if isinstance(thing, nn.Module) else ()
    trained = [(module, module.training) for module in modules]
    try:
        yield mine
    finally:
        for module, training in trained:
            module.training = training
