"""Masks by their length, and masks without which a function is not called."""

import re
from collections.abc import Callable, Iterator
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

LENGTHS = re.compile(r"(^|_)(lens|lengths?|valid_len)$")
Calls = Callable[[Facts], Callable[..., Any]]  # how it is called by facts


def of_lengths(thing: Any, names: Facts) -> list[str]:
    """What is called so as if it took lengths, of what else it takes."""
    known = {*names.values()}
    return [
        one.name
        for one in trial_calls.listed(thing)[3:]
        if one.name not in known
        and LENGTHS.search(one.name)
        and (one.default is None or one.default is one.empty)
    ]


def meanings(name: str, told: Facts) -> list[str]:
    """What a mask may say: lengths, if it has such a name, and else none."""
    every = [LENGTHS.search(name) and "lengths", told.get("mask")]
    return [one for one in every if one][-1:] or [*MEANINGS]


def without_any(
    thing: Any, calls: Calls, facts: Facts, told: Facts
) -> dict[str, Any]:
    """What it is handed where nothing is hidden, if it must be something.

    That is None, if it takes that; or else a mask that hides nothing, of the
    meaning and the axes by which it is right, or is called at all.
    """
    name = facts["names"].get("mask")
    listed = {one.name: one for one in trial_calls.listed(thing)}
    if name not in listed or listed[name].default is not listed[name].empty:
        return {}
    layouts = [told["layout"]] if "layout" in told else [*LAYOUTS]
    nothing = {**facts, **told, "without": "nothing"}
    if any(outputs(calls, {**nothing, "layout": one}) for one in layouts):
        return {"without": "nothing"}
    said = [told["mask"]] if "mask" in told else [*TO_HIDE]
    axes = [told["mask_axes"]] if "mask_axes" in told else [*MASKS]
    most, best = 0, {"without": "nothing"}
    for layout, meaning, its in product(layouts, said, axes):
        ways = {"without": "a mask", "mask": meaning, "mask_axes": its}
        made = outputs(calls, {**facts, **told, **ways, "layout": layout})
        # What is right counts most; of what is not, what is made at all.
        if (much := 10 * sum(made) + len(made)) > most:
            most, best = much, ways
    return best


def outputs(calls: Calls, facts: Facts) -> list[bool]:
    """Of the calls in which it makes what is asked, whether it is right."""
    made = []
    for q, k, v in some_inputs():
        output = trial_calls.outcome(calls(facts), q, k, v)
        if isinstance(output, Tensor) and output.shape == q.shape:
            usual = attention(q, k, v)
            right = torch.allclose(output.float(), usual, atol=1e-3)
            made.append(right)
    return made


def some_inputs() -> Iterator[tuple[Tensor, ...]]:
    """Queries, keys and values, with heads and without."""
    for front in ((2, 3), (2,), ()):
        yield tuple(numbers(*front, 5, 4, seed=seed) for seed in range(3))
