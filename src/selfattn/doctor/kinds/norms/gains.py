"""What the gains of a norm may be meant as, by what they are at first."""

from typing import Any

from torch import Tensor, nn

OPTIONS = {"itself": "the gain", "one plus": "1 + gain"}


def first_gain(module: Any) -> Tensor | None:
    """The first of what a module learns, as it is made."""
    held = module.parameters() if isinstance(module, nn.Module) else iter(())
    return next(iter(held), None)


def from_zero(module: Any) -> dict[str, list[str]]:
    """What a gain that is zero may be meant as: Gemma's counts from one."""
    gain = first_gain(module)
    zero = gain is not None and not gain.any()
    return {"gain": [*OPTIONS]} if zero else {}
