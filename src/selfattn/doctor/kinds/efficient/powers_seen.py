"""What weights tell beside the scores: which step was done otherwise.

Of a mechanism that sees what it may, the logarithm of each weight is a score,
but for a number for its row. Where it grows with the score, and faster or
slower, its scale is another; where the number goes with the column, the
softmax was another; where it is the score itself, there was none.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercise import Mistake, name_of, unspoken
from selfattn.doctor.exercises.dot_product import weights as tables

NEAR = 1e-2  # of a slope, and of a logarithm
FEW = 4  # keys of which no slope is told

SCALES = (
    tables.no_scale,
    tables.divided_by_d,
    tables.multiplied_by_the_root,
    tables.scaled_by_the_number_of_keys,
)
OTHERS = (
    tables.no_softmax,
    tables.sigmoid_instead_of_softmax,
    tables.softmax_over_queries,
)


KNOWN = tuple(map(unspoken, (*SCALES, *OTHERS)))


def hint(weights: Tensor, scores: Tensor, may: Tensor, d: int) -> str:
    """The name of the step that was done otherwise; "" if none is told.

    Args:
        weights: of one text and head, (n, n).
        scores: the products of its queries and keys, over √d.
        may: which keys each query may see.
        d: the features of a query.
    """
    if shared_out(weights, scores, may):
        return name_of(tables.no_softmax)
    if not bool((weights[may] > 0).all()):
        return ""
    if shared_out(weights, scores.sigmoid(), may):
        return name_of(tables.sigmoid_instead_of_softmax)
    logs = weights.log()
    found = slopes(logs, scores, may)
    if found is not None:
        return of_slopes(found / math.sqrt(d), d)
    if alike_along(logs - scores, may, dim=0):
        return name_of(tables.softmax_over_queries)
    return ""


def shared_out(weights: Tensor, made: Tensor, may: Tensor) -> bool:
    """Whether each row of weights is one of these, times a number."""
    own, of_row = weights * may, made * may
    by = (own * of_row).sum(-1, True) / of_row.square().sum(-1, True)
    gap = (own - by * of_row).norm()
    return bool(gap < NEAR * own.norm())


def slopes(logs: Tensor, scores: Tensor, may: Tensor) -> Tensor | None:
    """How fast logarithms grow with scores in long rows; None: unevenly."""
    rows = may.sum(-1) >= FEW
    many = may.sum(-1, True)
    x, y = (t.masked_fill(~may, 0.0) for t in (scores, logs))
    x, y = (
        (t - t.sum(-1, True) / many).masked_fill(~may, 0.0) for t in (x, y)
    )
    x, y = x[rows], y[rows]
    found = (x * y).sum(-1) / x.square().sum(-1)
    rest = y - found[:, None] * x
    even = rest.norm() < NEAR * y.norm()
    return found if bool(even) else None


def alike_along(factor: Tensor, may: Tensor, dim: int) -> bool:
    """Whether a factor is one number along an axis, where that is seen."""
    high = factor.masked_fill(~may, -torch.inf).amax(dim)
    low = factor.masked_fill(~may, torch.inf).amin(dim)
    return bool(((high - low) < NEAR).all())


def of_slopes(scales: Tensor, d: int) -> str:
    """What the scores are scaled by, in words; "" if that is as it should be.

    Where it is no other number that one might mean, it is one over the root
    of a count that changes, or that is not the width: how many keys there are.
    """
    known: tuple[tuple[Callable[..., Any] | Mistake, float], ...] = (
        (tables.no_scale, 1.0),
        (tables.divided_by_d, 1 / d),
        (tables.multiplied_by_the_root, math.sqrt(d)),
        (tables.multiplied_by_the_root, float(d)),
    )
    for mistake, scale in known:
        if is_near(scales, torch.full_like(scales, scale)):
            return name_of(mistake)
    counts = scales**-2
    if is_near(counts, torch.full_like(counts, float(d))):
        return ""
    if bool((scales > 0).all()) and is_near(counts, counts.round()):
        return name_of(tables.scaled_by_the_number_of_keys)
    return ""


def is_near(one: Tensor, other: Tensor) -> bool:
    """Whether numbers are the same, but for a hundredth."""
    return torch.allclose(one, other, rtol=NEAR)
