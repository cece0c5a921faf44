"""How functions that rotate are called, and which features make a pair."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.kinds.positions import waves
from selfattn.doctor.kinds.positions.rotary.arguments import called
from selfattn.doctor.kinds.positions.rotary.part import (
    is_half_turned,
    part_turned,
    with_the_rest,
    without_the_rest,
)
from selfattn.doctor.kinds.positions.rotary.trying import (
    AXES,
    ROW,
    TOKENS,
    Found,
    axis_of,
    find_out,
)
from selfattn.doctor.kinds.positions.rotary.ways_of_calling import WORDS, Way
from selfattn.doctor.kinds.trial_calls import listed
from selfattn.doctor.patient import Facts
from selfattn.positions import halves_to_pairs, pairs_to_halves

AFTER_TOKENS = ("BNHD", "NBHD")  # axes with heads where fewer would be others
FACTS = {
    "pairs": Fact(
        "which features make a pair",
        {"neighbours": "2i and 2i + 1", "halves": "i and i + d/2"},
    ),
    "layout": Fact(
        "the axes of x, if it has four; or one row of all tokens",
        {
            "BHND": "batch, heads, tokens, features",
            "BNHD": "batch, tokens, heads, features",
            "NBHD": "tokens, batch, heads, features",
            ROW: "tokens, heads, features: all texts in one row",
        },
    ),
    "call": Fact(
        "call(patient, x, offset) returns x rotated", saying=sayings.FUNCTION
    ),
    "told": Fact(
        "how it is told the position: offset or positions",
        saying=sayings.WAY_TOLD,
    ),
    "name": Fact("the name of that argument", saying=sayings.NAME),
    "base": Fact(
        "the base of its rates; 10000 when not said",
        saying=sayings.AT_LEAST_ONE,
    ),
    "width": Fact(
        "its number of features, if it takes no other", saying=sayings.WIDTH
    ),
    "part": Fact(
        "which part of its features it turns, the first, if not all",
        saying=sayings.PART,
    ),
}


def read(thing: Any, told: Facts) -> Reading:
    """How it can be called, its width, and how far it counts.

    Raises:
        UnclearError: if it cannot be called.
    """
    base = base_of(thing)
    told = {**base, **told}
    found = find_out(thing, told)
    seen: dict[str, Any] = {"found": found, "longest": found.longest, **base}
    if found.width is not None:
        seen["width"] = found.width
    seen |= part_turned(thing, told, found)
    wanted = layouts_of(found, told)
    lacks = axes_it_lacks(found, told)
    placed = any(way.placed or way.given for way in found.ways.values())
    if not (placed or "call" in told):
        why = "it has no argument for it that I know"
        lacks |= {"offset": why, "negative": why}
        return Reading(seen, wanted, lacks)
    if not found.backwards:
        lacks["negative"] = "below 0 it does not count backwards"
    has = () if "call" in told else ("offset",)
    return Reading(seen, wanted, lacks, has)


def layouts_of(found: Found, told: Facts) -> dict[str, list[str]]:
    """The layouts to try: tokens come first only in x of four axes.

    Who takes others, too, and counts along the first is wrong in those.
    """
    if {layout for layout, _ in found.ways} == {ROW}:
        return {"layout": [ROW]}
    four = all(axes == AXES["heads"] for _, axes in found.ways)
    layouts = [*TOKENS]
    return {"layout": layouts if four or told.get("layout") else layouts[:2]}


def base_of(thing: Any) -> dict[str, float]:
    """The base that it has by default, or holds, if it is a larger one.

    Long texts want one; below 10000 there is rather a slip than a design.
    """
    held = [getattr(thing, name, None) for name in WORDS["base"]]
    names = (*WORDS["base"], "theta")
    held += [p.default for p in listed(thing) if p.name in names]
    larger = [x for x in held if isinstance(x, int | float) and x > waves.BASE]
    return {"base": float(larger[0])} if larger else {}


def perhaps(thing: Any, facts: Facts) -> Iterator[Facts]:
    """That it turns half of its features, as some models do."""
    if is_half_turned(thing, facts, facts["found"]):
        yield {"part": 0.5}


def axes_it_lacks(found: Found, told: Facts) -> dict[str, str]:
    """What numbers of axes it does not take, if it takes four.

    Who told where, of four, tokens stand promised nothing of fewer.
    """
    taken = {axes for _, axes in found.ways}
    if {layout for layout, _ in found.ways} == {ROW}:
        return {}  # each text is handed over on its own
    why = "it takes no x of so many axes"
    few = {name: n for name, n in AXES.items() if n < 4 or 4 not in taken}
    if told.get("layout") in AFTER_TOKENS:
        taken &= {AXES["heads"]}
    return {name: why for name, n in few.items() if n not in taken}


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it in its own order of axes and features, and turn back."""

    def rotate(x: Tensor, offset: int) -> object:
        if facts["layout"] == ROW and x.ndim != AXES["batch"]:
            return text_by_text(rotate, x, offset)
        axis = axis_of(facts["layout"], x.ndim)
        given = pairs_to_halves(x) if facts["pairs"] == "halves" else x
        if facts.get("part"):
            given = with_the_rest(given, facts["width"])
        given = given.movedim(-2, axis)
        output = at_position(thing, given, offset, facts)
        if not isinstance(output, Tensor) or output.shape != given.shape:
            return output
        if facts.get("part"):
            output = without_the_rest(output, given, x.shape[-1])
        output = output.movedim(axis, -2)
        return (
            halves_to_pairs(output) if facts["pairs"] == "halves" else output
        )

    return rotate


def text_by_text(
    rotate: Callable[[Tensor, int], object], x: Tensor, offset: int
) -> object:
    """Each text in a row of its own, with its heads or with one."""
    heads = x.shape[-3] if x.ndim > AXES["batch"] else 1
    texts = x.reshape(-1, heads, *x.shape[-2:])
    turned = [rotate(text, offset) for text in texts]
    fitting = [y for y in turned if isinstance(y, Tensor)]
    if any(y.shape != texts[0].shape for y in fitting) or not fitting:
        return turned[0]
    return torch.stack(fitting).reshape(x.shape)


def at_position(thing: Any, x: Tensor, offset: int, facts: Facts) -> object:
    """Call it with the position of the first token, in its own way."""
    if facts.get("call") is not None:
        return facts["call"](thing, x, offset)
    layout, found = facts["layout"], facts["found"].ways
    any_way: Way = next(iter(found.values()))
    way = found.get((layout, x.ndim), any_way)
    axis = axis_of(layout, x.ndim)
    base = facts.get("base")
    return called(thing, way, x, offset, axis, facts["pairs"], base)
