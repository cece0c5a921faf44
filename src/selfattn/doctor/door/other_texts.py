"""Modules that take pictures, or texts of one length, called as others are.

A copy of one is handed a text as all are, lays it out as the module wants it,
and gives back what comes out as a text: so that who looks at it need not know.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from selfattn.doctor.copying import copy_of
from selfattn.doctor.door.trying import drawn, needed, tensor
from selfattn.doctor.kinds.layer.lengths import ROWS_OF_THREE, may_be_long
from selfattn.doctor.kinds.text_layouts import PICTURES, laid_out, read_back

LAID_OUT = {
    "BDN": "features come before tokens",
    "BDHW": "its tokens are those of a picture",
    "BHWD": "its tokens are those of a picture",
}


def ways(
    module: nn.Module, n: int, widths: list[int]
) -> Iterator[tuple[nn.Module, str]]:
    """Copies of a module that take texts of n tokens, and why they do.

    A convolution mixes tokens, too, and is none of those.

    Args:
        module: takes no texts as they are.
        n: how many tokens there are; it may want more, and is handed more.
        widths: how wide they may be.
    """
    tried = [(layout, ROWS_OF_THREE) for layout in PICTURES]
    longer = (long for long in may_be_long(module, "BND", {}) if long > n)
    tried += [("BND", long) for long in longer]
    for layout, long in tried:
        wide = [d for d in widths if d != long]
        others = [as_text(module, layout, long)]
        if layout in PICTURES:  # may have any size; a map of features may not
            others.append(as_text(module, layout, long + 2))
        if all(is_called(other, n, wide) for other in others):
            why = LAID_OUT.get(layout, f"its texts have {long} tokens")
            yield others[0], why


def is_called(module: nn.Module, n: int, widths: list[int]) -> bool:
    """Whether it takes a text of such a width, and of another if it must."""
    texts = [drawn(2, n, width) for width in widths]
    others = [(y,) for y in texts] if len(needed(module)) > 1 else [()]
    return any(
        tensor(module, x, *y) is not None for x in texts for y in others
    )


def is_a_filter(module: nn.Module) -> bool:
    """Whether it has a convolution, by which neighbours meet in a picture."""
    return any(
        len(kernel) > 1 and max(kernel) > 1
        for part in module.modules()
        if isinstance(kernel := getattr(part, "kernel_size", None), tuple)
    )


def as_text(module: nn.Module, layout: str, n: int) -> nn.Module:
    """A copy that takes shorter texts, and hands over n tokens laid out."""
    other = copy_of(module)
    other.register_forward_pre_hook(partial(hand_over, layout=layout, n=n))
    other.register_forward_hook(partial(give_back, layout=layout))
    return other


def hand_over(
    module: nn.Module, given: tuple[Any, ...], layout: str, n: int
) -> tuple[Any, ...]:
    """What comes first, if it is a text, as long as it must be."""
    x, *others = given
    if not isinstance(x, Tensor) or x.ndim != 3:
        return given
    module.__dict__["handed_over"] = x.shape[1]
    long = F.pad(x, (0, 0, 0, n - x.shape[1]))
    return (laid_out(long, layout), *others)


def give_back(
    module: nn.Module, given: tuple[Any, ...], output: Any, layout: str
) -> Any:
    """What comes out, of the tokens that were there."""
    made = output[0] if isinstance(output, tuple) and output else output
    if not isinstance(made, Tensor):
        return output
    return read_back(made, layout)[:, : module.__dict__.get("handed_over")]
