"""Numbers by which a block multiplies what its sublayers say."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.layer.norming import is_norm
from selfattn.doctor.probes import numbers


class Scaled(NamedTuple):
    """A sublayer, and what multiplies what it says."""

    sublayer: Callable[..., Tensor]
    scale: Callable[[Tensor], Tensor]

    def __call__(self, *given: Any, **named: Any) -> Tensor:
        """What the sublayer says, multiplied."""
        return self.scale(self.sublayer(*given, **named))


def unscaled(parts: Any) -> Any:
    """The parts of a block, of which none is multiplied by anything."""
    bare = {
        name: part.sublayer
        for name, part in parts._asdict().items()
        if isinstance(part, Scaled)
    }
    return parts._replace(**bare)


def scales(block: nn.Module, d: int, n: int) -> tuple[Any, ...]:
    """One for each of n sublayers, in their order; None where there is none.

    Raises:
        UnclearError: if the block has numbers of its own, and not as many.
    """
    own = [
        (name, multiplied_by(x))
        for name, x in block.named_parameters(recurse=False)
        if x.shape == (d,)
    ]
    own += [
        (name, child)
        for name, child in block.named_modules()
        if name and is_scale(child, d)
    ]
    if not own:
        return (None,) * n
    if len(own) == n:
        return tuple(call for _, call in own)
    raise UnclearError(
        f"It has numbers of its own, {', '.join(name for name, _ in own)}, "
        f"and {n} sublayers: I cannot tell what they are for. Examine its "
        "parts, each by itself."
    )


def multiplied_by(x: Tensor) -> Callable[[Tensor], Tensor]:
    """What multiplies every token by the same numbers."""
    return lambda y: y * x


def is_scale(module: nn.Module, d: int) -> bool:
    """Whether a module multiplies each feature by a number of its own."""
    shapes = [x.shape for x in module.parameters()]
    if [*module.children()] or shapes != [(d,)] or is_norm(module):
        return False
    x = numbers(1, 3, d, seed=1)
    try:
        with torch.no_grad():
            one, twice = module(x), module(2 * x)
    except Exception:
        return False  # it is called otherwise, so it is another thing
    [gain] = module.parameters()
    return torch.allclose(one, gain * x) and torch.allclose(twice, 2 * one)
