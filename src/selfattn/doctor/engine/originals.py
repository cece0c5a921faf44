"""PyTorch's functions, as they were before a patient's file was imported.

Our references, and the comparison, look them up as they are called. If the
import has put others in their place, an ill patient is compared with itself.
"""

import operator
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import torch
from torch import nn

import selfattn

PLACES = {
    "torch.nn.functional": (nn.functional,),
    "torch": (torch,),
    "torch.nn": (nn,),
    "torch.Tensor": torch.Tensor.__mro__[::-1],  # what is nearest, last
}
OPERATORS = {name for name in vars(operator) if name.startswith("__")}
Known = dict[str, dict[str, Any]]


def known() -> Known:
    """What PyTorch's names stand for now, by where they are."""
    found: Known = {where: {} for where in PLACES}
    for where, places in PLACES.items():
        for place in places:
            found[where].update(vars(place))
    return found


def replaced(before: Known) -> str:
    """Why nothing can be compared, if what we use is not what it was."""
    names = [".".join(at) for at in changed(before, known())]
    if not names:
        return ""
    listed = ", ".join(names[:4]) + " and others" * (len(names) > 4)
    return (
        f"Nothing can be said: its code replaces {listed}, and what it is "
        "compared with uses that, too. Give it functions of its own, and "
        "leave PyTorch's as they are."
    )


def changed(before: Known, now: Known) -> list[tuple[str, str]]:
    """Where others stand for functions that we use, and their names."""
    found = [
        (where, name)
        for where, things in before.items()
        for name, thing in things.items()
        if now[where].get(name) is not thing and callable(thing)
    ]
    if not found:
        return []
    own = {id(one) for things in before.values() for one in things.values()}
    return [
        (where, name)
        for where, name in found
        if name in OPERATORS or not name.startswith("_")
        if not is_lazy(now[where].get(name), own) and is_used(where, name)
    ]


def is_lazy(thing: Any, own: set[int]) -> bool:
    """Whether PyTorch itself put it there, as its compiler does when it is
    imported: a function of its files that had no public name before.
    """
    if not isinstance(thing, FunctionType) or id(thing) in own:
        return False
    home = Path(torch.__file__).parent
    return home in Path(thing.__code__.co_filename).parents


def is_used(where: str, name: str) -> bool:
    """Whether our code may call what has this name."""
    if where == "torch.nn.functional" or name in OPERATORS:
        return True  # PyTorch's modules call the functions, too
    before = {"torch": r"\btorch", "torch.nn": r"\bnn"}.get(where, "")
    pattern = re.compile(rf"{before}\.{name}\b")
    return any(pattern.search(text) for text in our_texts())


def our_texts() -> Iterator[str]:
    """What all files of this package say."""
    for path in Path(selfattn.__file__).parent.rglob("*.py"):
        yield path.read_text("utf-8")
