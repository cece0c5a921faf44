"""Hostile types: no tensor, no number, no function where one belongs."""

import collections.abc
import inspect
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor, nn

from hostile.feeding import alternatives
from hostile.trials import Case
from hostile.verdicts import Trial

# Numbers that may be below zero.
SIGNED = ("seed", "offset", "stop")

WRONG: dict[str, tuple[Any, ...]] = {
    "tensor": (
        *(None, "text", object(), [1.0, 2.0], numpy.ones((2, 3)), 3, 2.5, {}),
        *((), True, 1j, torch.Tensor, b"bytes", range(3)),
    ),
    "count": (
        *(None, "3", 2.5, math.nan, object(), [3], 1j, math.inf, -1, -7),
        *(-(10**6), {}, (), b"3", torch.tensor([1, 2]), torch.tensor(2.5)),
    ),
    "signed": (None, "3", 2.5, math.nan, object(), [3], 1j, math.inf, (), {}),
    "number": (None, "x", object(), [0.5], 1j, math.nan, (), {}, b"1"),
    "flag": ("no", None, object(), 2.5, [], math.nan, "True", ()),
    "function": (3, "gelu", object(), [1], 2.5, {}, torch.ones(2)),
    "module": (3, "x", object(), None, [1], torch.ones(2), nn.Linear),
    "text": (3, None, object(), 2.5, ["x"], torch.ones(2)),
    "choice": (3, None, object(), "no such", ["x"], torch.ones(2)),
    "path": (3, None, object(), 2.5, ["x"], torch.ones(2)),
    "sequence": (3, None, object(), 2.5, math.nan),
    "mapping": (3, None, object(), 2.5, "x", [1, 2]),
    "pair": (3, None, object(), "ab", (1,), (1, 2, 3), (1.5, 2), (None, 2)),
    "other": (object(),),
}
EACH = 6  # of these for each parameter


def trials(case: Case) -> Iterator[Trial]:
    """A few wrong things for each parameter."""
    for name in case.call.target.parameters:
        hint = case.call.target.hints.get(name, inspect.Parameter.empty)
        kinds = {kind_of(name, one) for one in alternatives(hint)} - {"none"}
        if not kinds or "any" in kinds:
            continue
        wrong = [x for x in WRONG[min(kinds)] if not fits(x, name, hint)]
        for x in case.rng.sample(wrong, min(EACH, len(wrong))):
            yield case.nonsense("a type", f"{name}={brief(x)}", **{name: x})
    for name, x in case.call.tensors().items():
        if x.layout == torch.strided and x.ndim:
            sparse = x.to_sparse()
            yield case.nonsense("a type", f"{name} sparse", **{name: sparse})


def kind_of(name: str, hint: Any) -> str:
    """What sort of thing a parameter wants."""
    if hint is type(None):
        return "none"
    if hint in (Any, object, inspect.Parameter.empty):
        return "any"
    if hasattr(hint, "dim_str") or hint is Tensor:
        return "tensor"
    simple = {bool: "flag", float: "number", str: "text", Path: "path"}
    if hint in simple:
        return simple[hint]
    if hint is int:
        return "signed" if name in SIGNED else "count"
    return kind_of_generic(hint)


def kind_of_generic(hint: Any) -> str:
    """The same for types that are put together."""
    import typing

    origin = typing.get_origin(hint)
    if origin is collections.abc.Callable or hint.__class__ is type(
        typing.Protocol
    ):
        return "function" if not is_module(hint) else "module"
    if origin is typing.Literal:
        return "choice"
    if origin is tuple and typing.get_args(hint) == (int, int):
        return "pair"
    if origin in (collections.abc.Mapping, dict):
        return "mapping"
    if origin in (collections.abc.Sequence, collections.abc.Iterable, list):
        return "sequence"
    return "module" if is_module(hint) else "other"


def is_module(hint: Any) -> bool:
    """Whether a type is one of modules."""
    return inspect.isclass(hint) and issubclass(hint, nn.Module)


def fits(x: Any, name: str, hint: Any) -> bool:
    """Whether a wrong thing would be right after all."""
    types = alternatives(hint)
    if x is None:
        return type(None) in types
    if isinstance(x, str) and x != "no such":
        return str in types
    if isinstance(x, float) and not math.isnan(x):
        return float in types
    return isinstance(x, int) and int in types and name in SIGNED


def brief(x: Any) -> str:
    """A wrong thing in few words, the same in every run."""
    if type(x) is object:
        return "object()"
    return " ".join(repr(x).split())[:40]
