"""A sublayer with its norm, with the path past it and without."""

from collections.abc import Callable

from torch import Tensor

Layer = Callable[[Tensor], Tensor]


def add(x: Tensor, sublayer: Layer, norm: Layer, pre: bool) -> Tensor:
    """One sublayer with its residual path and its norm."""
    return x + sublayer(norm(x)) if pre else norm(x + sublayer(x))


def alone_in_place(pre, x, sublayer, norm):
    """A sublayer and its norm without the path past them."""
    return sublayer(norm(x)) if pre else norm(sublayer(x))
