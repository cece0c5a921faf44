"""How functions that rotate are called, and which features make a pair."""

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.kinds.positions.rotary.arguments import called
from selfattn.doctor.kinds.positions.rotary.part import (
    is_half_turned,
    part_turned,
    with_the_rest,
    without_the_rest,
)
from selfattn.doctor.kinds.positions.rotary.trying import (
    AXES,
    Found,
    axis_of,
    find_out,
)
from selfattn.doctor.kinds.positions.rotary.ways_of_calling import Way
from selfattn.doctor.patient import Facts
from selfattn.positions import halves_to_pairs, pairs_to_halves

FACTS = {
    "pairs": Fact(
        "which features make a pair",
        {"neighbours": "2i and 2i + 1", "halves": "i and i + d/2"},
    ),
    "layout": Fact(
        "the axes of x, if it has four",
        {
            "BHND": "batch, heads, tokens, features",
            "BNHD": "batch, tokens, heads, features",
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
    "width": Fact(
        "its number of features, if it takes no other", saying=sayings.COUNT
    ),
    "part": Fact(
        "which part of its features it turns, the first, if not all",
        saying=sayings.NUMBER,
    ),
}


def read(thing: Any, told: Facts) -> Reading:
    """How it can be called, its width, and how far it counts.

    Raises:
        UnclearError: if it cannot be called.
    """
    found = find_out(thing, told)
    seen: dict[str, Any] = {"found": found, "longest": found.longest}
    if found.width is not None:
        seen["width"] = found.width
    seen |= part_turned(thing, told, found)
    lacks = axes_it_lacks(found)
    placed = any(way.placed or way.given for way in found.ways.values())
    if not (placed or "call" in told):
        why = "it has no argument for it that I know"
        return Reading(seen, lacks={**lacks, "offset": why, "negative": why})
    if not found.backwards:
        lacks["negative"] = "below 0 it does not count backwards"
    has = () if "call" in told else ("offset",)
    return Reading(seen, lacks=lacks, has=has)


def perhaps(thing: Any, facts: Facts) -> Iterator[Facts]:
    """That it turns half of its features, as some models do."""
    if is_half_turned(thing, facts, facts["found"]):
        yield {"part": 0.5}


def axes_it_lacks(found: Found) -> dict[str, str]:
    """What numbers of axes it does not take, if it takes four."""
    taken = {axes for _, axes in found.ways}
    why = "it takes no x of so many axes"
    few = {name: n for name, n in AXES.items() if n < 4 or 4 not in taken}
    return {name: why for name, n in few.items() if n not in taken}


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it in its own order of axes and features, and turn back."""

    def rotate(x: Tensor, offset: int) -> object:
        swapped = facts["layout"] == "BNHD" and x.ndim == 4
        given = pairs_to_halves(x) if facts["pairs"] == "halves" else x
        if facts.get("part"):
            given = with_the_rest(given, facts["width"])
        given = given.transpose(1, 2) if swapped else given
        output = at_position(thing, given, offset, facts)
        if not isinstance(output, Tensor) or output.shape != given.shape:
            return output
        if facts.get("part"):
            output = without_the_rest(output, given, x.shape[-1])
        output = output.transpose(1, 2) if swapped else output
        return (
            halves_to_pairs(output) if facts["pairs"] == "halves" else output
        )

    return rotate


def at_position(thing: Any, x: Tensor, offset: int, facts: Facts) -> object:
    """Call it with the position of the first token, in its own way."""
    if facts.get("call"):
        return facts["call"](thing, x, offset)
    layout, found = facts["layout"], facts["found"].ways
    any_way: Way = next(iter(found.values()))
    way = found.get((layout, x.ndim), any_way)
    axis = axis_of(layout, x.ndim)
    return called(thing, way, x, offset, axis, facts["pairs"])
