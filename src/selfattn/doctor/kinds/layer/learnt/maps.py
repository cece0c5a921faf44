"""Maps that are followed by a convolution along the tokens."""

from collections.abc import Callable, Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from selfattn.doctor.kinds.layer.learnt.left_over import (
    NOTHING,
    Steps,
    letters,
)
from selfattn.doctor.kinds.layer.parts import Projections

Along = Callable[[Tensor], Tensor]


def convolved(module: nn.Module, parts: Projections) -> Sequence[Steps]:
    """The ways in which what is projected may be convolved, per feature."""
    found = [
        (name, part)
        for name, part in module.named_modules()
        if isinstance(part, nn.Conv1d) and part.groups == part.in_channels > 1
    ]
    if not found:
        return NOTHING
    own = {
        letter: along(part)
        for name, part in found
        for letter in "qkv"
        if letter in letters(name)
    }
    if own:
        return [{"project": followed(own)}]
    if len(found) > 1:
        return NOTHING
    one = along(found[0][1])
    ways = ("k", "kv", "qkv", "v", "q")
    return [{"project": followed(dict.fromkeys(way, one))} for way in ways]


def along(part: nn.Conv1d) -> Along:
    """A convolution of (batch, n, features) that gives as many tokens.

    What comes out longer is padded at both ends, and is cut at its own.
    """
    behind = part.dilation[0] * (part.kernel_size[0] - 1)

    def call(x: Tensor) -> Tensor:
        weight = part.weight.to(x)
        bias = None if part.bias is None else part.bias.to(x)
        given = x.mT
        pad = part.padding[0] if isinstance(part.padding[0], int) else 0
        both = (behind // 2, behind - behind // 2)
        if part.padding == "same":
            given = F.pad(given, both)
        else:
            given = F.pad(given, (pad, pad) if pad else (behind, 0))
        made = F.conv1d(
            given, weight, bias, dilation=part.dilation, groups=part.groups
        )
        return made[..., : x.shape[-2]].mT

    return call


def followed(by: dict[str, Along]) -> Callable[..., Any]:
    """Projections, of which some are convolved."""

    def project(parts: Projections, x: Tensor, context: Tensor) -> Any:
        made = {
            "q": parts.q(x),
            "k": parts.k(context),
            "v": parts.v(context),
        }
        return tuple(
            by[name](y) if name in by else y for name, y in made.items()
        )

    return project
