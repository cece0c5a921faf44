"""What is done otherwise by those who keep a mask of their own."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations.design import Deviation
from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.masks import causal
from selfattn.masks import causal_mask

Table = Callable[[int, int], Tensor]
FAR = 256  # more tokens than what is asked has


@mistake
def window_one_too_wide():
    """Each query sees one key more than you say.

    Cause: The window is compared with <=, or its own position not counted.
    Cure: A window of w sees w - 1 keys back and itself: i - j < w.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """


@mistake
def window_one_too_narrow():
    """Each query sees one key less than you say.

    Cause: The window is compared with <, where its edge was meant to count.
    Cure: A window of w sees w - 1 keys back and itself: i - j < w.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """


@mistake
def window_open_to_one_side():
    """On one side, queries see as far as there are keys.

    Cause: Of the two comparisons that make a window, one is missing.
    Cure: Both edges: (j <= i) & (i - j < w).
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """


@mistake
def window_ignored():
    """Queries see all that came before, not just a window of it.

    Cause: The window is told, and never used.
    Cure: i - j < w, together with the causal mask.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """


@mistake
def first_keys_not_kept():
    """The keys that all should see, the first ones, are hidden.

    Cause: The window moves on, and what should stay in sight goes with it.
    Cure: (j < kept) | (i - j < w), or keep the first keys in the cache.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """


def moved(table: Tensor, by: int, ends: bool = False) -> Tensor:
    """A table whose keys are moved on, and beyond whose ends all is so."""
    made = torch.full_like(table, ends)
    n = table.shape[-1]
    if abs(by) < n:
        made[:, max(by, 0) : n + min(by, 0)] = table[
            :, max(-by, 0) : n - max(by, 0)
        ]
    return made


def past(table: Tensor) -> Tensor:
    """The keys up to each query's own."""
    return causal_mask(*table.shape)


def own(table: Tensor) -> Tensor:
    """Each query's own key alone."""
    n_q, n_k = table.shape
    return torch.eye(n_k, dtype=torch.bool)[n_k - n_q :]


def reach(table: Tensor) -> int:
    """How many keys in a row the last query sees, from its own back."""
    row = table[-1].flip(0)
    return int(row.cumprod(0).sum())


def nearer(table: Table) -> Table:
    """A mask without the farthest key of its window, other keys kept."""

    def other(n_q: int, n_k: int) -> Tensor:
        seen, whole = table(n_q, n_k), table(FAR, FAR)
        edge, place = reach(whole) - 1, torch.arange(FAR)
        kept = whole[-1] & (place < FAR - 1 - edge)
        far = torch.arange(n_k - n_q, n_k)[:, None] - place[:n_k]
        return seen & ((far != edge) | kept[:n_k] | own(seen))

    return other


def not_first(table: Tensor, kept: int = 1) -> Tensor:
    """A table without its first keys, but for queries that stand there."""
    late = torch.arange(table.shape[-1]) >= kept
    return table & (late | own(table) | ~table[-1])


CHANGES: tuple[tuple[Any, Callable[[Tensor], Tensor]], ...] = (
    (window_one_too_wide, lambda t: t | moved(t, -1)),
    (window_one_too_wide, lambda t: t | moved(t, -1) & past(t)),
    (window_one_too_wide, lambda t: t | moved(t, 1)),
    (window_one_too_wide, lambda t: t | moved(t, -1) | moved(t, 1)),
    (window_one_too_narrow, lambda t: t & (moved(t, 1, True) | own(t))),
    (window_one_too_narrow, lambda t: t & (moved(t, -1, True) | own(t))),
    (
        window_one_too_narrow,
        lambda t: t & (moved(t, 1, True) & moved(t, -1, True) | own(t)),
    ),
    (window_ignored, past),
    (window_ignored, torch.ones_like),
    (window_open_to_one_side, lambda t: t | ~past(t)),
    (window_open_to_one_side, lambda t: t | past(t)),
    (causal.not_itself, lambda t: t & ~own(t)),
    *(
        (first_keys_not_kept, lambda t, kept=kept: not_first(t, kept))
        for kept in (1, 2, 3, 4)
    ),
)


def of_table(table: Table) -> tuple[Deviation, ...]:
    """What is done otherwise with a mask that is kept without being asked."""

    def changed(change: Callable[[Tensor], Tensor]) -> Table:
        return lambda n_q, n_k: change(table(n_q, n_k))

    return (
        Deviation({"past": nearer(table)}, window_one_too_narrow),
        *(
            Deviation({"past": changed(change)}, name)
            for name, change in CHANGES
        ),
    )
