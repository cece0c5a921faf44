"""Every callable that a stranger may call, found from the package itself.

Public is what an ``__all__`` names, what is documented for its caller (with
arguments, a reference or an example), and what nothing in the package calls:
it can only be there for others. So a new function is public, and tried,
without anybody's asking.
"""

import ast
import importlib
import inspect
import pkgutil
import typing
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from torch import nn

import selfattn

ROOT = Path(selfattn.__file__).parent
# Parts that no stranger calls, each with the reason.
ELSEWHERE = {
    "selfattn.labs": "drawn in a browser, whose tests move every control",
    "selfattn.plots": "draws the chapters' own figures, nobody else's data",
    "selfattn.checks": "raises the errors that the others are tried for",
    "selfattn.signatures": "likewise",
    "selfattn.pieces": "what mechanisms are made of",
    "selfattn.hidden": "likewise",
    "selfattn.spoilt": "likewise",
    "selfattn.infinite": "likewise",
    "selfattn.transforms": "likewise",
    "selfattn.underflow": "likewise",
    "selfattn.feature_chunks": "likewise",
    "selfattn.kernels": "likewise",
    "selfattn.bound": "what layers make of functions that they are given",
    "selfattn.data.drawing": "what every task wears, which are tried",
    "selfattn.devices.world": "starts processes; its tests end and delay them",
    "selfattn.doctor": "has patients of its own: its clinic and its audit",
}
INTERNAL = {
    "selfattn.called.answered": "a call, and a check if it fails",
    "selfattn.called.check_called": "a check",
    "selfattn.called.known_as": "of checks, whose errors it words",
    "selfattn.looking_inside.freely": "of `fewest_keys`",
    "selfattn.models.config.is_plain": "of what loads, which is tried",
    "selfattn.probing.has_one_answer": "of `Probe`, which is tried",
    "selfattn.random_features.log_features": "a part of a mechanism",
    "selfattn.data.numbering.numbers": "of a task",
    "selfattn.layers.lacks_range": "of a norm",
    "selfattn.models.config.check_sizes": "of what loads, which is tried",
    "selfattn.models.config.said_of": "likewise",
    "selfattn.models.config.sizes_in_file": "likewise",
    "selfattn.models.config.agree": "likewise",
    "selfattn.models.config.yes_or_no": "likewise",
    "selfattn.infinite.shown_by_a_value": "of mechanisms, which are tried",
    "selfattn.mismatches.check_filled": "a check",
    "selfattn.models.steps.tempered": "of `sample`, which is tried",
    "selfattn.single_heads.with_features": "of `change_heads`, which is tried",
    "selfattn.mismatches.mismatch": "of what a layer says of an error",
    "selfattn.efficient.reformer.of_moderate_length": "of buckets, tried",
    "selfattn.wrapped.stands_for": "wraps what is tried, for nobody else",
}
DOCUMENTED = ("Args:", "Arguments ", "Reference", "Yields:", ">>> ")


class Target(NamedTuple):
    """Something to call: a function, a constructor or a method."""

    name: str  # "layers.LayerNorm.forward"
    call: Callable[..., Any]
    of: type | None  # the class whose method it is
    parameters: dict[str, inspect.Parameter]
    hints: dict[str, Any]


def targets() -> list[Target]:
    """All of them, by name."""
    used = names_used()
    found = [
        target
        for module in modules()
        for name, thing in vars(module).items()
        if is_public(module, name, thing, used)
        for target in of_thing(module, name, thing)
    ]
    return sorted(found, key=lambda target: target.name)


def modules() -> Iterator[ModuleType]:
    """The modules of the package that a stranger calls."""
    for found in pkgutil.walk_packages(selfattn.__path__, "selfattn."):
        if found.name.endswith("__main__"):
            continue
        if not found.name.startswith(tuple(ELSEWHERE)):
            yield importlib.import_module(found.name)


def names_used() -> Counter[str]:
    """How often each name is read anywhere in the package."""
    used: Counter[str] = Counter()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Name):
                used[node.id] += 1
    return used


def is_public(
    module: ModuleType, name: str, thing: Any, used: Counter[str]
) -> bool:
    """Whether it was made here, for others to call."""
    here = getattr(thing, "__module__", None) == module.__name__
    if f"{module.__name__}.{name}" in INTERNAL:
        return False
    offered = name in getattr(module, "__all__", ())
    is_code = inspect.isfunction(thing) or inspect.isclass(thing)
    if name.startswith("_") or not is_code or not here:
        return False  # what another module offers is found where it was made
    if inspect.isclass(thing) and not issubclass(thing, nn.Module):
        return False  # a tuple of results, a protocol, a step of autograd
    told = inspect.getdoc(thing) or ""
    documented = any(mark in told for mark in DOCUMENTED)
    return offered or documented or used[name] == 0


def of_thing(module: ModuleType, name: str, thing: Any) -> Iterator[Target]:
    """A function; or a class's constructor and its documented methods."""
    full = f"{module.__name__.removeprefix('selfattn.')}.{name}"
    if not inspect.isclass(thing):
        yield target(full, thing, thing, None)
        return
    yield target(full, thing, thing.__init__, None)
    for method, code in vars(thing).items():
        if method.startswith("_"):
            continue
        if inspect.isfunction(code):
            yield target(f"{full}.{method}", code, code, thing)
        elif isinstance(code, classmethod):
            bound = getattr(thing, method)
            yield target(f"{full}.{method}", bound, bound, None)


def target(
    name: str, call: Callable[..., Any], code: Any, of: type | None
) -> Target:
    """What there is to know of it from its signature."""
    parameters = dict(inspect.signature(code).parameters)
    parameters.pop("self", None)
    return Target(name, call, of, parameters, typing.get_type_hints(code))
