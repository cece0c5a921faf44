"""The parts of an encoder block, rightly joined."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from torch import Tensor

from selfattn.doctor.kinds.blocks.sublayers import Layer, add


class Parts(NamedTuple):
    """What an encoder block is made of, and in which order it shall join."""

    attention: Callable[..., Tensor]  # of x and mask=
    feed_forward: Layer
    norms: tuple[Layer, Layer]
    pre: bool  # the norms before their sublayers, or behind the sum
    d_model: int
    apart: bool = False  # the sublayers side by side
    d_context: int | None = None  # there is none

    def layers(self, x, mask=None):
        """The sublayers, each a function of x alone."""
        return partial(self.attention, mask=mask), self.feed_forward


def encoder_block(parts, x, mask=None):
    """Attention and the feed-forward network, each added and normed."""
    attend = partial(parts.attention, mask=mask)
    first, second = parts.norms
    if parts.apart:
        return x + attend(first(x)) + parts.feed_forward(second(x))
    h = add(x, attend, first, parts.pre)
    return add(h, parts.feed_forward, second, parts.pre)
