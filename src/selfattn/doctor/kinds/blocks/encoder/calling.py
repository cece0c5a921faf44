"""How an encoder block is called, and where its parts are."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.kind import Fact, UnclearError
from selfattn.doctor.kinds.blocks import parts as block_parts
from selfattn.doctor.kinds.blocks.encoder.reference import Parts
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.patient import Facts

FACTS = {
    "attention": Fact("the name of its attention"),
    **block_parts.FACTS,
}


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


def look(thing: Any, said: Facts) -> dict[str, Any]:
    """What can be read off a block, and the name of its mask."""
    return block_parts.look(thing, block_parts.MASKS)
