"""How wide the tokens may be that a module takes, by what it has learnt."""

import torch
from torch import Tensor, nn


def widths(module: nn.Module) -> list[int]:
    """How wide its tokens may be, the likeliest first."""
    learnt = [*module.parameters()]
    found = [p.shape[-1] for p in learnt if not is_vector(p)]
    found += [p.numel() for p in learnt if is_vector(p) and p.ndim]
    found += [b.shape[-1] for b in module.buffers() if b.ndim > 1]
    return list(dict.fromkeys([*found, 8]))


def is_vector(learnt: Tensor) -> bool:
    """Whether it has one number a feature, with axes of one for a picture."""
    return learnt.ndim < 2 or (
        learnt.ndim > 2 and learnt.numel() == max(learnt.shape)
    )


def norms_of(module: nn.Module) -> int:
    """How many norms it has: parts with vectors of its width alone."""
    width = widths(module)[0]
    return sum(
        {p.shape for p in part.parameters()} == {torch.Size([width])}
        for part in module.modules()
    )
