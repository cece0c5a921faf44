"""How many axes a thing wants, and inputs that get as many.

Who promises to take texts in a batch has not promised to take one alone. A
call tells: of fewer axes it raises, or makes another shape.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.probes import numbers

SIZES = (2, 3, 4, 5)  # of which an input has the last few


def wanted(call: Callable[[Tensor], Any], width: int, least: int = 2) -> int:
    """The fewest axes that it takes, ``least`` if it takes none."""
    every = range(least, len(SIZES) + 1)
    return next((axes for axes in every if takes(call, width, axes)), least)


def takes(call: Callable[[Tensor], Any], width: int, axes: int) -> bool:
    """Whether of so many axes it makes as many."""
    x = numbers(*SIZES[-axes:-1], width)
    made = trial_calls.outcome(call, x)
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
