"""Whether what a module has learnt is told how to change.

A number that moves the output and gets no gradient is never trained: somebody
has cut what leads to it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds import one_length, trial_calls
from selfattn.doctor.probes import numbers

STEP = 1e-3  # by which numbers are moved
MOVES = 1e-5
HALF = (0.45, 0.55)  # half the step moves about half as much
TOKENS = (7, 6)  # of x and of a context, where any number is taken


def untaught(
    module: nn.Module, call: Callable[..., Any], *widths: int
) -> list[str]:
    """The names of the numbers that move an output, and learn nothing.

    What a step moves in a jump, such as a choice, is not asked.
    """
    only = one_length.of(call)
    long = TOKENS if only is None else (only, only)
    texts = [
        numbers(2, n, d, seed=seed)
        for n, d, seed in zip(long, widths, TOKENS, strict=False)
    ]
    named = {n: p for n, p in module.named_parameters() if p.requires_grad}
    grads = gradients(call, [*named.values()], texts)
    if grads is None:
        return []  # what it cannot do is seen when it is asked
    fixed = {
        name: torch.ones_like(named[name]) if grad is None else grad == 0
        for name, grad in zip(named, grads, strict=True)
    }
    if all(bool(cells.all()) for cells in fixed.values()):
        return []
    return [
        name
        for name, cells in fixed.items()
        if bool(cells.any()) and moves(call, named[name], cells, texts)
    ]


def gradients(
    call: Callable[..., Any], learnt: list[nn.Parameter], texts: list[Tensor]
) -> list[Tensor | None] | None:
    """Those of its numbers, each None if it has none; None if it raises.

    Who works them out anew on the way back only adds them up.
    """
    before = [one.grad for one in learnt]
    try:
        for one in learnt:
            one.grad = None
        with torch.enable_grad():
            said = call(*texts)
            # Round numbers cancel out by chance, and their sines do not.
            (
                said * (numbers(*said.shape, seed=9) + 0.1).sin()
            ).sum().backward()
        return [one.grad for one in learnt]
    except Exception:
        return None
    finally:
        for one, grad in zip(learnt, before, strict=True):
            one.grad = grad


def moves(
    call: Callable[..., Any],
    number: nn.Parameter,
    cells: Tensor,
    texts: list[Tensor],
) -> bool:
    """Whether the output changes with some numbers, little by little."""
    was = number.detach().clone()
    step = STEP * numbers(was.numel(), seed=3).view(was.shape).to(was) * cells
    usual = trial_calls.outcome(call, *texts)
    ways = []
    for share in (0.5, 1.0):
        with torch.no_grad():
            number += share * step
        other = trial_calls.outcome(call, *texts)
        with torch.no_grad():
            number.copy_(was)
        if not isinstance(usual, Tensor) or not isinstance(other, Tensor):
            return False
        ways.append(float((other - usual).detach().norm()))
    half, whole = ways
    low, high = HALF
    return whole > MOVES and low < half / whole < high
