"""Sublayers that end in a part of their own: it maps, adds x, and norms.

So BERT has them. Such an end is given two texts, what the sublayer says and
its x; the attention before it lies in one part together with its end, and the
network before the other end lies in the block itself.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds.blocks.wrapped import holds_maps, takes_one
from selfattn.doctor.kinds.layer.norming import is_norm

SUBLAYERS = 2  # of an encoder block


class Ended(NamedTuple):
    """A block of two sublayers with such ends."""

    attending: str  # the part in which the attention and its end lie
    ends: tuple[nn.Module, nn.Module]
    norms: tuple[nn.Module, nn.Module]


def ended(block: nn.Module) -> Ended | None:
    """The parts of a block whose two sublayers end so; None if they do not."""
    ends = {
        name: [x for x in module.children() if is_norm(x)]
        for name, module in block.named_modules()
        if module is not block and holds_maps(module)
    }
    ends = {
        name: norms
        for name, norms in ends.items()
        if norms and not takes_one(block.get_submodule(name))
    }
    attending = next(iter(ends), "").rpartition(".")[0]
    if len(ends) != SUBLAYERS or not attending:
        return None
    first, second = map(block.get_submodule, ends)
    norms = [each[0] for each in ends.values()]
    return Ended(attending, (first, second), (norms[0], norms[1]))


@contextlib.contextmanager
def saying(part: nn.Module, words: Callable[[Any], Any]) -> Iterator[None]:
    """A part that says what is made of what it is given, for a while."""

    def instead(module: nn.Module, given: Any, said: Any) -> Any:
        made = words(given[0])
        return (made, *said[1:]) if isinstance(said, tuple) else made

    hook = part.register_forward_hook(instead)
    try:
        yield
    finally:
        hook.remove()


@contextlib.contextmanager
def bared(end: nn.Module, norm: nn.Module) -> Iterator[None]:
    """An end that gets zeros for x, and norms nothing, for a while."""

    def nothing(module: nn.Module, args: Any, named: Any) -> Any:
        if len(args) > 1:
            return (args[0], torch.zeros_like(args[1]), *args[2:]), named
        *_, last = named
        return args, {**named, last: torch.zeros_like(named[last])}

    hook = end.register_forward_pre_hook(nothing, with_kwargs=True)
    try:
        with saying(norm, lambda given: given):
            yield
    finally:
        hook.remove()


def attention(
    seen: Ended, attend: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    """What the attention says, without the x and the norm at its end."""

    def bare(x: Tensor, *others: Any, **named: Any) -> Tensor:
        with bared(seen.ends[0], seen.norms[0]):
            return attend(x, *others, **named)

    return bare


def network(
    seen: Ended, block: nn.Module, call: Callable[..., Any]
) -> Callable[[Tensor], Tensor]:
    """What the block makes of each token if its attention says just x."""
    attending = block.get_submodule(seen.attending)

    def bare(x: Tensor) -> Tensor:
        with (
            saying(attending, lambda given: x),
            bared(seen.ends[1], seen.norms[1]),
        ):
            said: Tensor = call(x)
        return said

    return bare
