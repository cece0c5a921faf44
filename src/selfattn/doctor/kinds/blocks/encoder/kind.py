"""An encoder block: attention and a feed-forward network, added and normed."""

from typing import Any

from torch import nn

from selfattn.doctor.deviations.training import with_dropout
from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Examples, Kind
from selfattn.doctor.kinds.blocks.calling import prepare
from selfattn.doctor.kinds.blocks.encoder.calling import (
    FACTS,
    adapt,
    parts_of,
    read,
)
from selfattn.doctor.kinds.blocks.encoder.mistakes import MISTAKES
from selfattn.doctor.kinds.blocks.encoder.probes import of_width
from selfattn.doctor.kinds.blocks.encoder.reference import encoder_block
from selfattn.doctor.kinds.blocks.exercise import of_parts
from selfattn.doctor.patient import Facts


def exercise(thing: Any, facts: Facts) -> Exercise:
    """The exercise of joining the patient's parts."""
    parts = parts_of(thing, facts)
    made = of_parts(
        "encoder-block",
        encoder_block,
        parts,
        of_width(parts.d_model),
        MISTAKES,
        words=("both", "a mask"),
    )
    return with_dropout(made, facts.get("dropout"))


def examples() -> Examples:
    """A healthy block, and what is to be said of it: nothing."""
    return {"": (nn.TransformerEncoderLayer(6, 2, 11, batch_first=True), {})}


KIND = Kind(
    "encoder-block",
    does="x + sublayer(norm(x)), or norm(x + sublayer(x)), for both sublayers",
    exercise=exercise,
    facts=FACTS,
    read=read,
    prepare=prepare,
    adapt=adapt,
    examples=examples,
)
