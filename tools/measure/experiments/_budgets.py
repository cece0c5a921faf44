"""Train once, and read at each budget: budgets are checkpoints of one run."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor, nn

Read = TypeVar("Read")


def trained(
    model: nn.Module,
    losses: Iterator[Tensor],
    rate: float,
    budgets: tuple[int, ...],
    read: Callable[[], Read],
    fused: bool | None = None,
) -> dict[int, Read]:
    """Train by Adam, and read after each of so many steps."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=fused)
    found, done = {}, 0
    for budget in budgets:
        for loss in islice(losses, budget - done):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        done = budget
        with torch.no_grad():
            found[budget] = read()
    return found


def flat(found: dict[int, dict[str, float]]) -> dict[str, float]:
    """Several numbers read at each budget, each by its name and the budget."""
    return {
        f"{name}, {budget}": number
        for budget, now in found.items()
        for name, number in now.items()
    }
