"""The exercises of the chapter `cost`, and how they go wrong.

Spoilers: read this after you have tried.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercise import UnusableError, describe
from selfattn.doctor.probes import Inputs, Sizes


def whole(number: int) -> Callable[[Sizes], int]:
    """An input that is this whole number on every size of probe."""
    return lambda sizes: number


def number_from(answer: Any, inputs: Inputs) -> Tensor:
    """Call the answer in order, and read what it returns as one number."""
    if not callable(answer):
        raise UnusableError(
            f"A function is asked for, but this is {describe(answer)}."
        )
    found = answer(*inputs.values())
    if found is None or found is ...:
        raise NotImplementedError
    return torch.as_tensor(found).to(torch.float64)
