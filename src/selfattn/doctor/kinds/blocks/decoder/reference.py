"""The parts of a decoder block, rightly joined."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from torch import Tensor

from selfattn.doctor.kinds.blocks.sublayers import Layer, add
from selfattn.masks import causal_mask


class Parts(NamedTuple):
    """What a decoder block is made of, and in which order it shall join."""

    self_attention: Callable[..., Tensor]  # of x and mask=
    cross_attention: Callable[..., Tensor]  # of x, context and mask=
    feed_forward: Layer
    norms: tuple[Layer, Layer, Layer]
    pre: bool  # the norms before their sublayers, or behind the sum
    d_model: int
    d_context: int
    apart: bool = False  # never are its sublayers side by side

    def layers(self, x, context, mask=None):
        """The sublayers, each a function of x alone."""
        return sublayers(self, x, context, mask)


def decoder_block(parts, x, context, mask=None):
    """Causal self-attention, cross-attention, feed-forward network."""
    return joined(parts, x, sublayers(parts, x, context, mask))


def sublayers(parts, x, context, mask=None, causal=causal_mask):
    """The three sublayers, each a function of x alone."""
    past = None if causal is None else causal(x.shape[-2], x.shape[-2])
    return (
        partial(parts.self_attention, mask=past),
        lambda h: parts.cross_attention(h, context, mask=mask),
        parts.feed_forward,
    )


def joined(parts, x, layers):
    """One sublayer after the other, each added and normed."""
    for layer, norm in zip(layers, parts.norms, strict=True):
        x = add(x, layer, norm, parts.pre)
    return x
