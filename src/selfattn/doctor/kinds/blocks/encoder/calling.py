"""How an encoder block is called, and where its parts are."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.kind import Fact, Reading, UnclearError
from selfattn.doctor.kinds.blocks import calling, parts
from selfattn.doctor.kinds.blocks.encoder.reference import Parts
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.patient import Facts

FACTS = {
    "attention": Fact("the name of its attention"),
    **calling.FACTS,
}


def parts_of(block: nn.Module, facts: Facts) -> Parts:
    """The parts of a block that somebody else wrote."""
    first, second = parts.norms(block, facts, 2)
    found = parts.attentions(block)
    if facts.get("attention"):
        attention = parts.part(block, facts["attention"])
    elif len(found) == 1:
        (attention,) = found.values()
    else:
        raise UnclearError(
            f"An encoder block has one attention, but I find {len(found)}. "
            "Say attention=…, its name in the block."
        )
    return Parts(
        parts.callable_attention(attention, facts["mask"]),
        parts.network(block, facts),
        (first, second),
        facts["order"] == "pre",
        parts.width(first),
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
