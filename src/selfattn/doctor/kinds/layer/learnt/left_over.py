"""What of a module is none of its projections."""

import re
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.kinds.layer.norming import is_norm
from selfattn.doctor.kinds.layer.parts import Projections

Steps = dict[str, Any]
NOTHING: tuple[Steps, ...] = ({},)


def places(parts: Projections) -> set[int]:
    """Where in memory the numbers of the projections lie.

    A bias with an axis for heads is flattened, and then another tensor.
    """
    maps = (parts.q, parts.k, parts.v, parts.out)
    held = (x for one in maps if one for x in one.whole)
    return {place(x) for x in held if x is not None}


def place(x: Tensor) -> int:
    """Where the numbers of a tensor lie."""
    return x.untyped_storage().data_ptr()


def numbers_left(
    module: nn.Module, parts: Projections
) -> Iterator[tuple[str, Tensor]]:
    """The parameters of a module that are none of a projection, or norm."""
    own = places(parts)
    norms = (part for part in module.modules() if is_norm(part))
    own |= {place(x) for norm in norms for x in norm.parameters()}
    for name, x in module.named_parameters():
        if place(x) not in own:
            yield name, x.detach()


def maps_left(
    module: nn.Module, parts: Projections
) -> Iterator[tuple[str, nn.Linear]]:
    """The linear maps of a module that are none of its projections."""
    own = places(parts)
    for name, part in module.named_modules():
        if isinstance(part, nn.Linear) and place(part.weight) not in own:
            yield name, part


def letters(name: str) -> set[str]:
    """The first letters of the words in a name.

    >>> sorted(letters("to_gates.weight"))
    ['g', 't', 'w']
    """
    return {word[:1] for word in re.split(r"[_.\d]+", name.lower())}
