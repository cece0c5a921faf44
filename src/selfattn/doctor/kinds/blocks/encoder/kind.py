"""An encoder block: attention and a feed-forward network, added and normed.

A block is known by how it joins its parts, so the reference is made of the
parts of the patient itself: its own attention, feed-forward network and
norms, joined as they should be. So it does not matter what they compute.
"""

from dataclasses import replace
from functools import partial

from torch import nn

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
from selfattn.doctor.kinds.blocks.encoder.reference import Parts, encoder_block


def for_block(parts: Parts) -> Exercise:
    """The exercise of joining these parts; its bank joins them wrongly."""
    return Exercise(
        "encoder-block",
        asks=(
            "x + sublayer(norm(x)), for both sublayers"
            if parts.pre
            else "norm(x + sublayer(x)), for both sublayers"
        ),
        solution=partial(encoder_block, parts),
        probes=of_width(parts.d_model),
        by_name=("mask",),
        mistakes=[
            replace(known, answer=partial(known.answer, parts))
            for known in MISTAKES
        ],
        optional={"mask": "a mask"},
    )


def examples() -> Examples:
    """A healthy block, and what is to be said of it: nothing."""
    return {"": (nn.TransformerEncoderLayer(6, 2, 11, batch_first=True), {})}


KIND = Kind(
    "encoder-block",
    does="x + sublayer(norm(x)), or norm(x + sublayer(x)), for both sublayers",
    exercise=lambda thing, facts: for_block(parts_of(thing, facts)),
    facts=FACTS,
    read=read,
    prepare=prepare,
    adapt=adapt,
    examples=examples,
)
