"""Whom a layer of its own formula sees beside whom it may, told by a name."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations import own_masks
from selfattn.doctor.exercise import name_of, unspoken
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.kinds.layer.experiments import who_sees_whom
from selfattn.doctor.kinds.layer.reference import Table
from selfattn.doctor.probes import numbers
from selfattn.masks import causal_mask

N = 11  # tokens
OTHERS = (
    triangles.one_too_many,
    triangles.from_the_other_side,
    triangles.upside_down,
)


KNOWN = tuple(
    map(unspoken, (*(known for known, _ in own_masks.CHANGES), *OTHERS))
)


def hint(
    layer: Callable[..., Any], d_model: int, causal: bool, table: Table | None
) -> str:
    """The name of the mask that it seems to keep; "" if it is none of these.

    A token moves what is said of itself in any case: by its query.
    """

    def kept(n_q: int, n_k: int) -> Tensor:
        may = torch.ones(n_q, n_k).bool() if table is None else table(n_q, n_k)
        return may & causal_mask(n_q, n_k) if causal else may

    may = kept(N, N)
    own = torch.eye(N).bool()
    with torch.no_grad():
        seen = who_sees_whom(layer, {"x": numbers(2, N, d_model, seed=5)})
    if seen.equal(may | own):
        return ""
    named = (one for one, other in masks(may, kept) if seen.equal(other | own))
    known = next(named, None)
    return "" if known is None else name_of(known)


def masks(may: Tensor, kept: Table) -> Iterator[tuple[Any, Tensor]]:
    """Masks that it might keep instead, each with its name."""
    yield triangles.one_too_many, may | own_masks.moved(may, 1)
    if not may.all():
        yield own_masks.window_one_too_narrow, own_masks.nearer(kept)(N, N)
    for known, change in own_masks.CHANGES:
        yield known, change(may)
    yield triangles.from_the_other_side, may.mT
    yield triangles.upside_down, ~may
