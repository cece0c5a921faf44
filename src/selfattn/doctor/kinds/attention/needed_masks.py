"""Masks by their length, and masks without which a function is not called."""

import re
from collections.abc import Callable, Collection, Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.attention.layouts import LAYOUTS, MASKS
from selfattn.doctor.kinds.mask_meanings import MEANINGS, TO_HIDE
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers
from selfattn.dot_product import attention

LENGTHS = re.compile(
    r"^(?!(.*_)?(max|min|train|chunk|window|block|total)_)"
    r"(.*_)?(lens|lengths?|valid_len)$"
)
Attend = Callable[..., Any]
Calls = Callable[[Facts], Attend]  # how it is called by facts
Inputs = tuple[Tensor, Tensor, Tensor]  # queries, keys and values
N = 5  # how many of each


def of_lengths(thing: Any, names: Facts) -> list[str]:
    """What is called so as if it took lengths, of what else it takes."""
    left = unsaid(thing, {*names.values()})
    return [name for name in left if LENGTHS.search(name)]


def unsaid(thing: Any, known: Collection[Any]) -> list[str]:
    """What it takes behind q, k and v, of what nobody knows, and may be None.

    That is the default, or it has none.
    """
    return [
        one.name
        for one in trial_calls.listed(thing)[3:]
        if (one.default is None or one.default is one.empty)
        and one.name not in known
    ]


def meanings(name: str, told: Facts) -> list[str]:
    """What a mask may say: what was told; else lengths, if it is called so;
    else all but those.
    """
    every = [LENGTHS.search(name) and "lengths", told.get("mask")]
    return [one for one in every if one][-1:] or [*MEANINGS]


def hide_keys(calls: Calls, facts: Facts, told: Facts) -> bool:
    """Whether lengths hide what is behind them, in any axes of theirs."""
    every = torch.ones(N, N).bool()
    few = every & (torch.arange(N) < 2)
    layouts = [told["layout"]] if "layout" in told else [*LAYOUTS]
    for layout, its in product(layouts, MASKS):
        ways = {"mask": "lengths", "mask_axes": its, "layout": layout}
        attend = calls({**facts, **told, **ways})
        for given in some_inputs():
            seen = [[*seen_in(attend, given, mask)] for mask in (every, few)]
            if all(seen) and all(heeds for ((_, heeds),) in seen):
                return True
    return False


def without_any(
    thing: Any, calls: Calls, facts: Facts, told: Facts
) -> dict[str, Any]:
    """What it is handed where nothing is hidden, if it must be something.

    That is None, if it takes that; or else a mask that hides nothing, of the
    meaning and the axes by which it is right, hides, or is called at all.
    """
    name = facts["names"].get("mask")
    listed = {one.name: one for one in trial_calls.listed(thing)}
    if name not in listed or listed[name].default is not listed[name].empty:
        return {}
    layouts = [told["layout"]] if "layout" in told else [*LAYOUTS]
    nothing = {**facts, **told, "without": "nothing"}
    if any(takes_none(calls({**nothing, "layout": one})) for one in layouts):
        return {"without": "nothing"}
    said = [told["mask"]] if "mask" in told else [*TO_HIDE]
    axes = [told["mask_axes"]] if "mask_axes" in told else [*MASKS]
    most, best = 0, {"without": "nothing"}
    for layout, meaning, its in product(layouts, said, axes):
        ways = {"without": "a mask", "mask": meaning, "mask_axes": its}
        attend = calls({**facts, **told, **ways, "layout": layout})
        if (much := how_well(attend)) > most:
            most, best = much, ways
    return best


def takes_none(attend: Attend) -> bool:
    """Whether it is right where it is handed no mask."""
    return any(
        right
        for given in some_inputs()
        for right, _ in seen_in(attend, given, None)
    )


def how_well(attend: Attend) -> int:
    """How much is right of what it makes if all keys are seen, or but one.

    What is right counts most; then whether the last key counts if it is
    seen, and only then, which holds of any formula; then what is made at all.
    By a mask that hides nothing no meaning is told from others.
    """
    every = torch.ones(N, N).bool()
    but_one = every & (torch.arange(N) < N - 1)
    return sum(
        100 * right + 10 * hides + 1
        for given, mask in product(some_inputs(), (every, but_one))
        for right, hides in seen_in(attend, given, mask)
    )


def seen_in(
    attend: Attend, given: Inputs, mask: Tensor | None
) -> Iterator[tuple[bool, bool]]:
    """Whether what it makes is right, and heeds the last key as it may.

    That is none, if it makes nothing, or no numbers.
    """
    q, k, v = given
    made = output_of(attend, q, k, v, mask)
    if made is None:
        return
    usual = attention(q, k, v, mask=mask)
    right = torch.allclose(made.float(), usual, atol=1e-3)
    last = torch.arange(N)[:, None] == N - 1
    k, v = (torch.where(last, 1 - x, x) for x in (k, v))
    other = output_of(attend, q, k, v, mask)
    heard = other is not None and not torch.allclose(other, made)
    yield right, heard == (mask is None or bool(mask[-1, -1]))


def output_of(attend: Attend, q: Tensor, *others: Any) -> Any:
    """What it makes, if those are numbers, of the shape that was asked for."""
    made = trial_calls.outcome(attend, q, *others)
    fits = isinstance(made, Tensor) and made.shape == q.shape
    return made if fits and bool(made.isfinite().all()) else None


def some_inputs() -> Iterator[Inputs]:
    """Queries, keys and values, with heads and without."""
    for front in ((2, 3), (2,), ()):
        q, k, v = (numbers(*front, N, 4, seed=seed) for seed in range(3))
        yield q, k, v
