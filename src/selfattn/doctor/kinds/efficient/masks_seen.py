"""Whom a mechanism sees beside whom it may, told by a name.

Of those alone whose weights are shared out as they should be among all that
they see: then it is the mask that is another. In tiles, buckets or rings it
is seldom another on the whole: one too many is so within each tile.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations import own_masks
from selfattn.doctor.exercise import Mistake, name_of, unspoken
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.kinds.efficient.mistakes import tiles
from selfattn.doctor.kinds.efficient.powers_seen import alike_along

KNOWN = tuple(
    map(
        unspoken,
        (
            *(known for known, _ in own_masks.CHANGES),
            triangles.one_too_many,
            triangles.upside_down,
            triangles.from_the_other_side,
            tiles.last_tile_left_out,
            tiles.diagonal_tiles_are_left_out,
        ),
    )
)


def hint(
    weights: Tensor, scores: Tensor, may: Tensor, others: dict[str, Mistake]
) -> str:
    """The name of the mask that it seems to have; "" if that is the right one.

    Args:
        weights: of one text and head, (n, n).
        scores: logarithms of what the weights should be, before they are
            shared out.
        may: which keys each query may see.
        others: what it is called here to see the ``future``, and to leave out
            the ``first`` tile.
    """
    seen = weights.isfinite() & (weights != 0)
    if seen.equal(may) or not is_fair(weights, scores, seen):
        return ""
    named = (known for known, table in masks(may) if seen.equal(table))
    known = next(named, None) or of_tiles(seen, may, others)
    return "" if known is None else name_of(known)


def is_fair(weights: Tensor, scores: Tensor, seen: Tensor) -> bool:
    """Whether all that is seen in a row has its share of it."""
    if bool((weights[seen] <= 0).any()):
        return False
    return alike_along(weights.log() - scores, seen, dim=-1)


def masks(may: Tensor) -> Iterator[tuple[Any, Tensor]]:
    """Masks that one might keep instead, each with its name."""
    own = torch.eye(len(may)).bool()
    yield triangles.one_too_many, may | own_masks.moved(may, 1)
    for known, change in own_masks.CHANGES:
        yield known, change(may)
    yield triangles.from_the_other_side, may.mT
    for table in (~may, ~may | own, may.mT & ~own):
        yield triangles.upside_down, table


def of_tiles(seen: Tensor, may: Tensor, others: dict[str, Mistake]) -> Any:
    """What is amiss in each tile, or in some, where others are right."""
    more, less = seen & ~may, may & ~seen
    n, ahead = len(may), torch.ones_like(may).triu(1)
    own = torch.eye(n).bool()
    next_one = own_masks.moved(own, 1)
    if not less.any():
        if not bool((more & ~next_one).any()):
            return triangles.one_too_many
        return others["future"] if bool((more & ahead).any()) else None
    if more.any():
        turned = bool((seen & ahead).any()) and more.equal(less.mT & ahead)
        both = bool((seen & own).any())
        made = triangles.from_the_other_side if both else triangles.upside_down
        return made if turned else None
    if not bool((less & ~own).any()):
        return triangles.not_itself
    return of_gaps(less, may, others)


def of_gaps(less: Tensor, may: Tensor, others: dict[str, Mistake]) -> Any:
    """Which tiles are left out, where some keys are not seen."""
    kept = (may & ~less).any(0)
    at = (~kept & may.any(0)).nonzero().flatten()
    if less.equal(may & ~kept) and len(at):
        if int(at[0]) == 0 and int(at[-1]) == len(at) - 1:
            return others["first"]
        n = len(may)
        if int(at[-1]) == n - 1 and int(at[0]) == n - len(at):
            return tiles.last_tile_left_out
    near = less.equal(may & in_pieces(less))
    return tiles.diagonal_tiles_are_left_out if near else None


def in_pieces(less: Tensor) -> Tensor:
    """The square tiles on the diagonal in which what is gone lies."""
    far = [
        int(row.nonzero()[0]) if row.any() else i for i, row in enumerate(less)
    ]
    begins = torch.tensor(far)
    return begins[:, None] == begins
