"""How functions that rotate are called, and which features make a pair."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.patient import Facts, parameters
from selfattn.positions import halves_to_pairs, pairs_to_halves

OFFSETS = ("offset", "start", "start_pos", "seqlen_offset", "past_length")


POSITIONS = ("positions", "position_ids", "pos", "position", "t", "input_pos")


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
}


def read(thing: Any, told: Facts) -> Reading:
    """How it is told where the first token stands, if at all."""
    names = parameters(thing)
    for form, words in (("offset", OFFSETS), ("positions", POSITIONS)):
        found = [name for name in words if name in names[1:]]
        if found:
            seen = {"told": form, "name": found[0]}
            return Reading(seen, has=("offset",))
    if "call" in told:
        return Reading({"told": "call"})
    why = "it has no argument for it that I know"
    lacks = {"offset": why, "negative": why}
    return Reading({"told": "nothing"}, lacks=lacks)


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it in its own order of axes and features, and turn back."""

    def rotate(x: Tensor, offset: int) -> object:
        swapped = facts["layout"] == "BNHD" and x.ndim == 4
        given = pairs_to_halves(x) if facts["pairs"] == "halves" else x
        given = given.transpose(1, 2) if swapped else given
        output = at_position(thing, given, offset, x.shape[-2], facts)
        if not isinstance(output, Tensor) or output.shape != given.shape:
            return output
        output = output.transpose(1, 2) if swapped else output
        return (
            halves_to_pairs(output) if facts["pairs"] == "halves" else output
        )

    return rotate


def at_position(
    thing: Any, x: Tensor, offset: int, n: int, facts: Facts
) -> object:
    """Call it with the position of the first token, in its own way."""
    if facts.get("call"):
        return facts["call"](thing, x, offset)
    if facts["told"] == "offset":
        return thing(x, **{facts["name"]: offset})
    if facts["told"] == "positions":
        return thing(x, **{facts["name"]: torch.arange(offset, offset + n)})
    return thing(x)
