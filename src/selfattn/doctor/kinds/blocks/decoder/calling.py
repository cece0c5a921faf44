"""How a decoder block is called, and where its parts are."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading, UnclearError
from selfattn.doctor.kinds.blocks import calling, parts
from selfattn.doctor.kinds.blocks.decoder.reference import Parts
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.patient import Facts, parameters
from selfattn.masks import causal_mask

MASKS = (
    "memory_mask",
    "context_mask",
    "encoder_attention_mask",
    "cross_mask",
    "src_mask",
)


CROSS = ("cross", "enc", "memory", "context", "src", "multihead_attn")


FACTS = {
    "self_attention": Fact(
        "the name of its attention to itself", saying=sayings.NAME
    ),
    "cross_attention": Fact(
        "the name of its attention to the context", saying=sayings.NAME
    ),
    "own_mask": Fact(
        "the name of its causal mask, if it must be told", saying=sayings.NAME
    ),
    **calling.FACTS,
}


def names_of(block: nn.Module, facts: Facts) -> tuple[Any, Any]:
    """The names of the attentions to itself, and to the context.

    Raises:
        UnclearError: if they are not told and cannot be found.
    """
    found = parts.attentions(block)
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
        return own[0], across[0]
    return names


def parts_of(block: nn.Module, facts: Facts) -> Parts:
    """The parts of a block that somebody else wrote.

    Raises:
        UnclearError: if they are not told and cannot be found.
    """
    names = names_of(block, facts)
    norms = parts.norms(block, facts, 3)
    first, second, third = norms
    d_model = parts.width(first)
    attend, cross = (
        parts.callable_attention(
            block, parts.part(block, name), facts, d_model, across=True
        )
        for name in names
    )
    network = parts.network(block, facts, d_model)
    return Parts(
        attend,
        cross,
        network,
        (first, second, third),
        facts["order"] == "pre",
        d_model,
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
        return calling.called(thing, facts, x, context, **given)

    return block


def read(thing: Any, told: Facts) -> Reading:
    """As for encoder blocks; and whether it must be told what is causal."""
    seen = calling.read(thing, MASKS)
    names = parameters(thing.forward)
    own = [n for n in ("tgt_mask", "causal_mask", "trg_mask") if n in names]
    return seen.with_facts(own_mask=own[0]) if own else seen
