"""Spoilt: whether a number is NaN or infinite, where one can look.

To look costs next to nothing on a processor. On a GPU one would have to wait
for the answer, and while PyTorch traces or transforms there is none.
"""

import math

import torch
from torch import Tensor

from selfattn.checks import is_transformed

# Of a trace by `torch.fx`, which has numbers, and shows them to nobody.
TRACING = torch._C._TorchDispatchModeKey.PROXY


def can_look(x: Tensor) -> bool:
    """Whether numbers are at hand: not traced, nor transformed, nor on a GPU,
    which one would have to wait for.
    """
    if torch.compiler.is_compiling():
        return False
    if not x.is_cpu or torch._C._get_dispatch_mode(TRACING):
        return False
    # Of somebody's own class, whose numbers may be anywhere.
    if type(x).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        return False
    return not is_transformed()


def largest(x: Tensor) -> float:
    """How far from zero any number is; NaN, if one is.

    A norm would say so too, but takes ten times as long on a processor.

    >>> largest(torch.tensor([1.0, -3.0])), largest(torch.tensor([torch.nan]))
    (3.0, nan)
    """
    least, most = x.detach().aminmax()
    return torch.maximum(-least, most).item()


def is_spoilt(x: Tensor) -> bool:
    """Whether a number is NaN or infinite, where one can look."""
    if not can_look(x):
        return False
    half = x.element_size() < 4
    total = x.sum(dtype=torch.float32) if half else x.sum()
    return not math.isfinite(total.item())
