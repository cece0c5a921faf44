"""What a table of sines and cosines is that is not the one it should be."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from selfattn.doctor.exercise import Mistake
from selfattn.doctor.exercises.positions.batch_axis import add_positions
from selfattn.doctor.kinds.positions.sinusoidal.mistakes import MISTAKES
from selfattn.doctor.kinds.positions.sinusoidal.steps import SINGLES
from selfattn.positions import sinusoidal

CLOSE = 1e-3  # who computes in float32 is that close
Order = Callable[[Tensor], Tensor]


def in_pairs(table: Tensor) -> Tensor:
    """Sines and cosines in turn, as they are."""
    return table


def in_halves(table: Tensor) -> Tensor:
    """All sines, then all cosines."""
    return torch.cat((table[:, 0::2], table[:, 1::2]), dim=-1)


def order_of(table: Tensor) -> Order | None:
    """In which order its waves lie, and how loud; None if they are others."""
    rows, d = table.shape
    usual = sinusoidal(rows, d)
    loud = float(table.norm() / usual.norm())
    for order in (in_pairs, in_halves):
        if torch.allclose(loud * order(usual), table.float(), atol=CLOSE):
            return partial(as_loud, loud=loud, order=order)
    return None


def as_loud(table: Tensor, loud: float, order: Order) -> Tensor:
    """A table in an order, so many times."""
    return loud * order(table)


def of_waves(table: Tensor) -> Iterator[Mistake]:
    """Additions of tables that are made otherwise than this one is."""
    order = order_of(table)
    if order is None:
        return
    for known in (*MISTAKES, *SINGLES):
        answer = partial(added, known=known, table=table, order=order)
        yield replace(known, answer=answer)


def added(x: Tensor, known: Mistake, table: Tensor, order: Order) -> Tensor:
    """X and a table that is made by mistake."""
    made = order(known.answer(*table.shape)).to(table.dtype)
    output: Tensor = add_positions(x, table=made)
    return output
