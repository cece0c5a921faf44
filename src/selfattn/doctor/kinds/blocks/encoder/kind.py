"""An encoder block: attention and a feed-forward network, added and normed.

A block is known by how it joins its parts, so the reference is made of the
parts of the patient itself: its own attention, feed-forward network and
norms, joined as they should be. So it does not matter what they compute.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Examples, Fact, Kind, UnclearError
from selfattn.doctor.kinds.blocks import parts as block_parts
from selfattn.doctor.kinds.blocks.encoder.mistakes import (
    MISTAKES,
    Parts,
    encoder_block,
)
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import Probe, Sizes, in_other_order


def among_themselves(sizes: Sizes) -> Tensor:
    """A mask, (n, n): each sees itself and the next, round the end.

    Neither it nor its opposite has an empty row: there, even the two ways
    to call PyTorch's attention give different answers.
    """
    i = torch.arange(sizes["n"])[:, None]
    ahead = (torch.arange(sizes["n"]) - i) % sizes["n"]
    return ahead < 2


def probes(d_model: int) -> tuple[Probe, ...]:
    """The inputs on which blocks are compared.

    Args:
        d_model: the width of the block's parts.
    """
    x, sizes = {"x": "batch n d"}, {"d": d_model}
    return (
        Probe("it is the two sublayers, each added and normed", x, sizes),
        Probe("its gradients are those of its parts", x, sizes, gradient=True),
        Probe("one token alone will do", x, {**sizes, "n": 1}),
        Probe(
            "as many sequences as tokens are no harder",
            x,
            {**sizes, "batch": 5},
        ),
        Probe(
            "the order in memory does not matter",
            x,
            sizes,
            change=in_other_order,
        ),
        Probe(
            "a token sees what the mask lets it see",
            {**x, "mask": among_themselves},
            sizes,
            needs=("mask",),
        ),
    )


def for_block(parts: Parts) -> Exercise:
    """The exercise of joining these parts; its bank joins them wrongly."""
    exercise = Exercise(
        "encoder-block",
        asks=(
            "x + sublayer(norm(x)), for both sublayers"
            if parts.pre
            else "norm(x + sublayer(x)), for both sublayers"
        ),
        solution=partial(encoder_block, parts),
        probes=probes(parts.d_model),
        by_name=("mask",),
        optional={"mask": "a mask"},
    )
    for known in MISTAKES:
        exercise.mistake_as(known)(partial(known, parts))
    return exercise


def parts_of(block: nn.Module, facts: Facts) -> Parts:
    """The parts of a block that somebody else wrote."""
    first, second = block_parts.norms(block, facts, 2)
    found = block_parts.attentions(block)
    if facts.get("attention"):
        attention = block_parts.part(block, facts["attention"])
    elif len(found) == 1:
        (attention,) = found.values()
    else:
        raise UnclearError(
            f"An encoder block has one attention, but I find {len(found)}. "
            "Say attention=…, its name in the block."
        )
    return Parts(
        block_parts.callable_attention(attention, facts["mask"]),
        block_parts.network(block, facts),
        (first, second),
        facts["order"] == "pre",
        block_parts.width(first),
    )


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call a block with x and a mask that is True where one may look."""

    def block(x: Tensor, mask: Tensor | None = None) -> object:
        given = {}
        if mask is not None:
            meant = as_meant(mask, facts["mask"], x.dtype)
            given[facts["mask_name"]] = meant
        return block_parts.called(thing, facts, x, **given)

    return block


def examples() -> Examples:
    """A healthy block, and what is to be said of it: nothing."""
    return {"": (nn.TransformerEncoderLayer(6, 2, 11, batch_first=True), {})}


KIND = Kind(
    "encoder-block",
    asks="x + sublayer(norm(x)), or norm(x + sublayer(x)), for both sublayers",
    exercise=lambda thing, facts: for_block(parts_of(thing, facts)),
    facts={
        "attention": Fact("the name of its attention"),
        **block_parts.FACTS,
    },
    look=lambda thing, said: block_parts.look(thing, block_parts.MASKS),
    prepare=block_parts.prepare,
    adapt=adapt,
    examples=examples,
)
