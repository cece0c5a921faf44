"""A copy of a module, with numbers that show mistakes."""

import torch
from torch import nn

from selfattn.doctor.copying import copy_of


def refilled(module: nn.Module) -> nn.Module:
    """A copy of a module, with numbers that show mistakes, to be evaluated.

    As modules are made, biases are often zero and scores all alike; then
    many a mistake changes nothing. The numbers are the same in every call.

    >>> refilled(nn.Linear(1, 2)).bias.tolist() == [0.0, 0.0]
    False
    """
    module = copy_of(module).float().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, x in module.named_parameters():
            new = torch.randn(x.shape, generator=generator)
            if x.ndim > 1:
                # A convolution of width one takes as many as it has channels.
                taken = x.shape[-1] if x.shape[-1] > 1 else x[0].numel()
                new /= taken**0.5
            elif x.ndim == 1:
                new = 0.3 * new + ("norm" in name and "weight" in name)
            if x.ndim:
                x.copy_(new)
    return module
