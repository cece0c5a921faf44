"""What is said of a function's formula, and the design that does it so."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations import scores
from selfattn.doctor.deviations.design import USUAL, Design


@dataclass(frozen=True)
class Formula:
    """What is said of a function's formula, and of its layout."""

    layout: str = "any"
    scale: float | None = None
    cap: float | None = None
    cosine: bool = False
    bias: Callable[[int, int, int], Tensor] | None = None
    always: bool = False
    from_first: bool = False
    window: int | None = None
    table: Callable[[int, int], Tensor] | None = None
    grouped: bool | str = False


def design(formula: Formula) -> Design:
    """The steps of a formula."""
    steps: dict[str, Any] = {}
    if formula.cosine:
        steps |= {"compare": scores.cosine, "scale": lambda width: 1.0}
    if formula.scale is not None:
        steps["scale"] = lambda width: formula.scale
    steps["bend"] = lambda table: bent(table, formula)
    steps["always"] = formula.always or formula.window is not None
    if keeps_a_mask(formula):
        steps |= {"past": lambda n, m: claimed(n, m, formula)}
        steps["always"] = True
    return replace(USUAL, **steps)


def bent(table: Tensor, formula: Formula) -> Tensor:
    """Scores, capped and with what is added to them."""
    if formula.cap is not None:
        table = formula.cap * torch.tanh(table / formula.cap)
    if formula.bias is not None:
        heads = table.shape[-3] if table.ndim > 3 else 1
        added = formula.bias(heads, *table.shape[-2:]).to(table)
        table = table + (added if table.ndim > 3 else added.squeeze(0))
    return table


def keeps_a_mask(formula: Formula) -> bool:
    """Whether it hides keys by itself, and not just all that come later."""
    hides = formula.window is not None or formula.table is not None
    return hides or (formula.always and formula.from_first)


def claimed(n_q: int, n_k: int, formula: Formula) -> Tensor:
    """The mask that a function keeps by itself."""
    start = 0 if formula.from_first else n_k - n_q
    far = torch.arange(n_q)[:, None] + start - torch.arange(n_k)
    if formula.table is not None:
        table = formula.table(n_q, n_k)
        return table & (far >= 0) if formula.always else table
    near = far.abs() < (formula.window or n_q + n_k)
    return near & (far >= 0) if formula.always else near
