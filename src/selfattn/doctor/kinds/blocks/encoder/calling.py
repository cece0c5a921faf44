"""How an encoder block is called, and where its parts are."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading, UnclearError
from selfattn.doctor.kinds.blocks import calling, flat, parts
from selfattn.doctor.kinds.blocks.encoder.reference import Parts
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.patient import Facts

FACTS = {
    "attention": Fact("the name of its attention", saying=sayings.NAME),
    **calling.FACTS,
}


def parts_of(block: nn.Module, facts: Facts) -> Parts:
    """The parts of a block that somebody else wrote."""
    first, second = parts.norms(block, facts, 2)
    d_model = parts.width(first)
    found = parts.attentions(block)
    name = facts.get("attention") or (
        next(iter(found)) if len(found) == 1 else ""
    )
    flat_one = None if name else flat.attention(block, facts)
    if name:
        attention = parts.callable_attention(
            block, parts.part(block, name), facts, d_model
        )
    elif flat_one is not None:
        attention = flat_one
    else:
        raise UnclearError(
            f"An encoder block has one attention, but I find {len(found)}. "
            "Say attention=…, its name in the block, or flat_attention=(q, k, "
            "v, out), if its maps lie in the block."
        )
    return Parts(
        attention,
        parts.network(block, facts, d_model),
        (first, second),
        facts["order"] == "pre",
        d_model,
    )


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call a block with x and a mask that is True where one may look."""

    def block(x: Tensor, mask: Tensor | None = None) -> object:
        given = {}
        if mask is not None:
            meant = as_meant(mask, facts["mask"], x.dtype)
            given[facts["mask_name"]] = meant
        return calling.called(thing, facts, x, **given)

    return block


def read(thing: Any, told: Facts) -> Reading:
    """What can be read off a block, and the name of its mask."""
    return calling.read(thing, parts.MASKS)
