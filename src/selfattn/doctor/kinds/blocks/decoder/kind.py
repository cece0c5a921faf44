"""A decoder block: it looks at itself, at a context, and then works."""

from typing import Any

from torch import nn

from selfattn.doctor.deviations.training import with_dropout
from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Examples, Kind
from selfattn.doctor.kinds.blocks.calling import prepare
from selfattn.doctor.kinds.blocks.decoder.calling import (
    FACTS,
    adapt,
    parts_of,
    read,
)
from selfattn.doctor.kinds.blocks.decoder.mistakes import MISTAKES
from selfattn.doctor.kinds.blocks.decoder.probes import of_width
from selfattn.doctor.kinds.blocks.decoder.reference import decoder_block
from selfattn.doctor.kinds.blocks.exercise import of_parts
from selfattn.doctor.patient import Facts


def exercise(thing: Any, facts: Facts) -> Exercise:
    """The exercise of joining the patient's parts."""
    parts = parts_of(thing, facts)
    made = of_parts(
        "decoder-block",
        decoder_block,
        parts,
        of_width(parts.d_model),
        MISTAKES,
        words=("all three", "a mask over the context"),
    )
    return with_dropout(made, facts.get("dropout"))


def examples() -> Examples:
    """A healthy block, and what is to be said of it: nothing."""
    return {"": (nn.TransformerDecoderLayer(6, 2, 11, batch_first=True), {})}


KIND = Kind(
    "decoder-block",
    does="self-attention, cross-attention, network: each added and normed",
    exercise=exercise,
    facts=FACTS,
    read=read,
    prepare=prepare,
    adapt=adapt,
    examples=examples,
)
