"""A call that is made to see what becomes of it, before anything is asked.

Who promises to take texts in a batch has not promised to take one alone: of
fewer axes it raises, or makes another shape.
"""

import contextlib
import inspect
import io
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.copying import copy_of
from selfattn.doctor.probes import numbers

STARS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
SIZES = (2, 3, 4, 5)  # of axes: an input has the last few


def outcome(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What a call returns; None if it raises, which is for probes to say.

    What it prints, warns of and draws at random stays in here.
    """
    with (
        torch.random.fork_rng(devices=[]),
        torch.no_grad(),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            return call(*given, **named)
        except Exception:
            return None


def alone(thing: Any) -> Any:
    """A copy of a thing, for calls that may change it; else the thing."""
    made = outcome(copy_of, thing)
    return thing if made is None else made


def listed(thing: Any) -> list[inspect.Parameter]:
    """The parameters of a thing that is called; none if none can tell."""
    try:
        called = getattr(thing, "forward", thing)
        found = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in found if p.kind not in STARS]


def as_tensor(made: Any) -> Any:
    """A table of lists or of NumPy's as a tensor; anything else as it is."""
    if not (isinstance(made, list) or type(made).__module__ == "numpy"):
        return made
    found = outcome(torch.as_tensor, made)
    return made if found is None else found


def wanted(call: Callable[[Tensor], Any], width: int, least: int = 2) -> int:
    """The fewest axes that it takes, ``least`` if it takes none."""
    every = range(least, len(SIZES) + 1)
    return next((axes for axes in every if takes(call, width, axes)), least)


def takes(call: Callable[[Tensor], Any], width: int, axes: int) -> bool:
    """Whether of so many axes it makes as many."""
    x = numbers(*SIZES[-axes:-1], width)
    made = outcome(call, x)
    return isinstance(made, Tensor) and made.shape == x.shape


def with_axes(x: Tensor, axes: int) -> Tensor:
    """An input with axes of one put in front, so that it has so many."""
    return x[(None,) * max(0, axes - x.ndim)]


def lifted(call: Callable[..., Any], axes: int) -> Callable[..., Any]:
    """Call it with so many axes, and give back as many as came.

    What came out in another shape is given back as it is.
    """

    def called(x: Tensor, *others: Any, **named: Any) -> Any:
        if x.ndim >= axes:
            return call(x, *others, **named)
        given = with_axes(x, axes)
        made = call(given, *others, **named)
        same = isinstance(made, Tensor) and made.shape == given.shape
        return torch.reshape(made, x.shape) if same else made

    return called
