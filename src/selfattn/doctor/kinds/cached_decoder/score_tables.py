"""Tables of scores of which weights were made: who is hidden from whom there.

A table has its queries and its keys along any axes: the keys along that which
the softmax ran along, the queries along another one that is as long as they
are many.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from selfattn.doctor.deviations import hiding
from selfattn.doctor.exercise import name_of
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.kinds.cached_decoder import mistakes

LOW = -1e4  # of such a score nothing is left
SMALL = 1e-6  # between numbers that are one number


class Table(NamedTuple):
    """Scores of which weights are made, and along which axis."""

    scores: Tensor
    axis: int

    def by_query(self, n_q: int, n_k: int) -> Tensor | None:
        """Its numbers, (tables, n_q, n_k), if it is of so many of both."""
        x, axis = self.scores, self.axis % max(self.scores.ndim, 1)
        if x.ndim < 2 or x.shape[axis] != n_k:
            return None
        others = [a for a in range(x.ndim) if x.shape[a] == n_q and a != axis]
        if not others:
            return None
        nearest = min(others, key=lambda a: abs(a - axis))
        return x.movedim((nearest, axis), (-2, -1)).reshape(-1, n_q, n_k)


def as_table(given: Any, named: Any) -> Table:
    """What PyTorch's own attention hides, as scores that are 0 elsewhere."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    said = {**dict(zip(names, given, strict=False)), **named}
    q, k, mask = said["query"], said["key"], said.get("attn_mask")
    shown = torch.zeros(q.shape[-2], k.shape[-2])
    if said.get("is_causal"):
        shown = torch.where(torch.ones_like(shown).tril() > 0, 0, -torch.inf)
    elif isinstance(mask, Tensor) and mask.dtype == torch.bool:
        shown = torch.where(mask, shown, -torch.inf)
    elif isinstance(mask, Tensor):
        shown = shown + mask.detach()
    return Table(shown, -1)


def seen_in(table: Tensor | None) -> Tensor | None:
    """Which query may see which key, (n_q, n_k), if all heads agree."""
    if table is None:
        return None
    sees = table > LOW
    return sees[0] if bool((sees == sees[:1]).all()) else None


def at_once(tables: Iterable[Table], n: int) -> list[Tensor]:
    """The tables of a text of so many tokens in one pass."""
    found = (one.by_query(n, n) for one in tables)
    return [one for one in found if one is not None]


def of_one_pass(tables: Iterable[Table], n: int) -> str:
    """What is wrong with how later keys are hidden in one pass."""
    past = torch.ones(n, n).tril().bool()
    for table in at_once(tables, n):
        sees = seen_in(table)
        if sees is None:
            continue
        if sees.equal(past.tril(-1)):
            first = table[:, 0]
            blind = bool((first == -torch.inf).all())
            return name_of(
                mistakes.not_itself_and_the_first_is_nan
                if blind
                else mistakes.not_itself_and_the_first_averages
            )
        if sees.equal(past | torch.ones(n, n).diagonal(1).diag(1).bool()):
            return name_of(triangles.one_too_many)
        tells_apart = table.amin() < table.amax()  # scores, not only a mask
        if (
            sees.all()
            and tells_apart
            and (name := of_the_fill(table[:, ~past]))
        ):
            return name
    return ""


def of_the_fill(later: Tensor) -> str:
    """With what number later keys are hidden, if it is one for all."""
    if not bool((later - later.flatten()[0]).abs().max() < SMALL):
        return ""
    fill = float(later.flatten()[0])
    if abs(fill) < SMALL:
        return name_of(functions.masked_with_zero)
    return name_of(hiding.masked_with_too_small_a_number)


def hide_the_future(tables: Iterable[Table], n: int) -> bool:
    """Whether there are tables of one pass, and all hide what comes later."""
    found = at_once(tables, n)
    later = torch.ones(n, n).triu(1).bool()
    return bool(found) and all(
        bool((one[:, later] <= LOW).all()) for one in found
    )
