"""A decoder block: it looks at itself, at a context, and then works.

As with the encoder block, the reference is made of the patient's own parts.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Examples, Fact, Kind, UnclearError
from selfattn.doctor.kinds.blocks import parts as block_parts
from selfattn.doctor.kinds.blocks.decoder.mistakes import (
    MISTAKES,
    Parts,
    decoder_block,
)
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.patient import Facts, parameters
from selfattn.doctor.probes import Probe, Sizes, in_other_order
from selfattn.masks import causal_mask

MASKS = (
    "memory_mask",
    "context_mask",
    "encoder_attention_mask",
    "cross_mask",
    "src_mask",
)
CROSS = ("cross", "enc", "memory", "context", "src", "multihead_attn")


def in_context(sizes: Sizes) -> Tensor:
    """A mask, (n, n_k): each sees two keys, round the end.

    Neither it nor its opposite has an empty row: there, even the two ways
    to call PyTorch's attention give different answers.
    """
    i = torch.arange(sizes["n"])[:, None]
    ahead = (torch.arange(sizes["n_k"]) - i) % sizes["n_k"]
    return ahead < 2


def probes(d_model: int) -> tuple[Probe, ...]:
    """The inputs on which blocks are compared.

    Args:
        d_model: the width of the block's parts.
    """
    both = {"x": "batch n d", "context": "batch n_k d"}
    sizes = {"d": d_model}
    return (
        Probe("it is the three sublayers, added and normed", both, sizes),
        Probe(
            "its gradients are those of its parts", both, sizes, gradient=True
        ),
        Probe(
            "one token sees itself and the context", both, {**sizes, "n": 1}
        ),
        Probe(
            "a context as long as the text is no harder",
            both,
            {**sizes, "n_k": 5},
        ),
        Probe(
            "the order in memory does not matter",
            both,
            sizes,
            change=in_other_order,
        ),
        Probe(
            "of the context it sees what the mask allows",
            {**both, "mask": in_context},
            sizes,
            needs=("mask",),
        ),
    )


def for_block(parts: Parts) -> Exercise:
    """The exercise of joining these parts; its bank joins them wrongly."""
    exercise = Exercise(
        "decoder-block",
        asks=(
            "x + sublayer(norm(x)), for all three sublayers"
            if parts.pre
            else "norm(x + sublayer(x)), for all three sublayers"
        ),
        solution=partial(decoder_block, parts),
        probes=probes(parts.d_model),
        by_name=("mask",),
        optional={"mask": "a mask over the context"},
    )
    for known in MISTAKES:
        exercise.mistake_as(known)(partial(known, parts))
    return exercise


def parts_of(block: nn.Module, facts: Facts) -> Parts:
    """The parts of a block that somebody else wrote.

    Raises:
        UnclearError: if they are not told and cannot be found.
    """
    found = block_parts.attentions(block)
    across = [n for n in found if any(word in n.lower() for word in CROSS)]
    own = [n for n in found if n not in across]
    names = facts.get("self_attention"), facts.get("cross_attention")
    if None in names:
        if len(own) != 1 or len(across) != 1:
            raise UnclearError(
                "A decoder block has two attentions, and I cannot tell which "
                "is which. Say self_attention=… and cross_attention=…, their "
                "names in the block."
            )
        names = own[0], across[0]
    attend, cross = (
        block_parts.callable_attention(
            block_parts.part(block, name), facts["mask"]
        )
        for name in names
    )
    norms = block_parts.norms(block, facts, 3)
    network = block_parts.network(block, facts)
    first, second, third = norms
    return Parts(
        attend,
        cross,
        network,
        (first, second, third),
        facts["order"] == "pre",
        block_parts.width(first),
    )


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call a block with x, a context, and a mask of ours over the context."""

    def block(
        x: Tensor, context: Tensor, mask: Tensor | None = None
    ) -> object:
        given = {}
        if mask is not None:
            meant = as_meant(mask, facts["mask"], x.dtype)
            given[facts["mask_name"]] = meant
        if facts.get("own_mask"):
            past = causal_mask(x.shape[1], x.shape[1])
            given[facts["own_mask"]] = as_meant(past, facts["mask"], x.dtype)
        return block_parts.called(thing, facts, x, context, **given)

    return block


def look(thing: Any, said: Facts) -> dict[str, Any]:
    """As for encoder blocks; and whether it must be told what is causal."""
    seen = block_parts.look(thing, MASKS)
    names = parameters(thing.forward)
    told = [n for n in ("tgt_mask", "causal_mask", "trg_mask") if n in names]
    return {**seen, "own_mask": told[0]} if told else seen


def examples() -> Examples:
    """A healthy block, and what is to be said of it: nothing."""
    return {"": (nn.TransformerDecoderLayer(6, 2, 11, batch_first=True), {})}


KIND = Kind(
    "decoder-block",
    asks="self-attention, cross-attention, network: each added and normed",
    exercise=lambda thing, facts: for_block(parts_of(thing, facts)),
    facts={
        "self_attention": Fact("the name of its attention to itself"),
        "cross_attention": Fact("the name of its attention to the context"),
        "own_mask": Fact("the name of its causal mask, if it must be told"),
        **block_parts.FACTS,
    },
    look=look,
    prepare=block_parts.prepare,
    adapt=adapt,
    examples=examples,
)
