"""RoPE: functions that rotate queries and keys, in either order."""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercises.positions.rope import ROPE, angles, turned
from selfattn.doctor.kind import Fact, Kind
from selfattn.doctor.patient import Facts, parameters
from selfattn.doctor.probes import Probe
from selfattn.positions import halves_to_pairs, pairs_to_halves, rope

OFFSETS = ("offset", "start", "start_pos", "seqlen_offset", "past_length")
POSITIONS = ("positions", "position_ids", "pos", "position", "t", "input_pos")


def needed(probe: Probe) -> tuple[str, ...]:
    """What a probe asks for that not every function can do."""
    origin = probe.inputs["offset"]({})
    axes = len(str(probe.inputs["x"]).split())
    wanted = {
        "single": axes == 2,
        "batch": axes == 3,
        "heads": axes == 4,
        "offset": origin > 0,
        "negative": origin < 0,
        str(probe.dtype).removeprefix("torch."): True,
    }
    return tuple(need for need in OPTIONAL if wanted.get(need))


OPTIONAL = {
    "offset": "a first token that stands elsewhere than at 0",
    "negative": "positions below 0",
    "single": "one sequence without a batch",
    "batch": "a batch without heads",
    "heads": "a batch with heads",
    "float64": "float64",
    "bfloat16": "bfloat16",
}

# For those that can do neither a single sequence nor an offset.
WHOLE = dataclasses.replace(
    ROPE.probes[5],
    asks="with heads, the first token stands at 0",
    inputs={"x": "batch heads n d", "offset": lambda _: 0},
)

REFERENCE = dataclasses.replace(
    ROPE,
    name="rope",
    probes=tuple(
        dataclasses.replace(probe, needs=needed(probe))
        for probe in (*ROPE.probes, WHOLE)
    ),
    mistakes=list(ROPE.mistakes),
    optional=OPTIONAL,
)


@REFERENCE.mistake
def nothing_turned(x, offset):
    """Nothing is turned: it returns what it was given.

    Cause: The rotated tensor is made, and not returned or not assigned.
    Cure: q = rotate(q), k = rotate(k).
    Chapter: positions
    """
    return x.clone()


@REFERENCE.mistake
def only_half_of_the_features(x, offset):
    """The second half of the features is not turned.

    Cause: The angles are made for half of the width, rotary_dim = d / 2, as
        GPT-J and GPT-NeoX do on purpose.
    Cure: All pairs turn, unless the weights were trained otherwise.
    Chapter: positions
    """
    d = x.shape[-1] // 4 * 2
    front = rope(x[..., :d], offset=offset) if d else x[..., :0]
    return torch.cat((front, x[..., d:]), dim=-1)


@REFERENCE.mistake
def sines_without_cosines(x, offset):
    """Lengths change: position 0 gives zeros beside what it was given.

    Cause: The cosine's term is missing, or the sine stands in its place.
    Cure: a cos - b sin, and a sin + b cos.
    Chapter: positions
    """
    angle = angles(x, offset)
    return turned(x, angle) - x * angle.cos().repeat_interleave(2, dim=-1).to(
        x.dtype
    )


def look(thing: Any, said: Facts) -> dict[str, Any]:
    """How it is told where the first token stands, if at all."""
    names = parameters(thing)
    for way, words in (("offset", OFFSETS), ("positions", POSITIONS)):
        found = [name for name in words if name in names[1:]]
        if found:
            return {"told": way, "name": found[0]}
    if "call" in said:
        return {"told": "call"}
    why = "it has no argument for it that I know"
    return {"told": "nothing", "lacks": {"offset": why, "negative": why}}


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it in its own order of axes and features, and turn back."""

    def rotate(x: Tensor, offset: int) -> object:
        swapped = facts["layout"] == "BNHD" and x.ndim == 4
        given = pairs_to_halves(x) if facts["pairs"] == "halves" else x
        given = given.transpose(1, 2) if swapped else given
        output = told(thing, given, offset, x.shape[-2], facts)
        if not isinstance(output, Tensor) or output.shape != given.shape:
            return output
        output = output.transpose(1, 2) if swapped else output
        return (
            halves_to_pairs(output) if facts["pairs"] == "halves" else output
        )

    return rotate


def told(thing: Any, x: Tensor, offset: int, n: int, facts: Facts) -> object:
    """Call it with the position of the first token, in its own way."""
    if facts.get("call"):
        return facts["call"](thing, x, offset)
    if facts["told"] == "offset":
        return thing(x, **{facts["name"]: offset})
    if facts["told"] == "positions":
        return thing(x, **{facts["name"]: torch.arange(offset, offset + n)})
    return thing(x)


KIND = Kind(
    "rope",
    asks="of queries or keys, the same with each pair of features turned",
    exercise=lambda thing, facts: REFERENCE,
    facts={
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
        "call": Fact("call(patient, x, offset) returns x rotated"),
        "told": Fact("how it is told the position: offset or positions"),
        "name": Fact("the name of that argument"),
    },
    look=look,
    adapt=adapt,
)
