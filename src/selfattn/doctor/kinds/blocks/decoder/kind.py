"""A decoder block: it looks at itself, at a context, and then works.

As with the encoder block, the reference is made of the patient's own parts.
"""

from dataclasses import replace
from functools import partial

from torch import nn

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
from selfattn.doctor.kinds.blocks.decoder.reference import Parts, decoder_block


def for_block(parts: Parts) -> Exercise:
    """The exercise of joining these parts; its bank joins them wrongly."""
    return Exercise(
        "decoder-block",
        asks=(
            "x + sublayer(norm(x)), for all three sublayers"
            if parts.pre
            else "norm(x + sublayer(x)), for all three sublayers"
        ),
        solution=partial(decoder_block, parts),
        probes=of_width(parts.d_model),
        by_name=("mask",),
        mistakes=[
            replace(known, answer=partial(known.answer, parts))
            for known in MISTAKES
        ],
        optional={"mask": "a mask over the context"},
    )


def examples() -> Examples:
    """A healthy block, and what is to be said of it: nothing."""
    return {"": (nn.TransformerDecoderLayer(6, 2, 11, batch_first=True), {})}


KIND = Kind(
    "decoder-block",
    does="self-attention, cross-attention, network: each added and normed",
    exercise=lambda thing, facts: for_block(parts_of(thing, facts)),
    facts=FACTS,
    read=read,
    prepare=prepare,
    adapt=adapt,
    examples=examples,
)
