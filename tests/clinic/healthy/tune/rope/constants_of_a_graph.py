"""For export: cosines and sines are constants, and the two halves follow."""

import math

import torch
from torch import nn


class RotaryConstants(nn.Module):
    """Slice, Mul, Sub, Add and Concat are all that ends up in the graph."""

    def __init__(self, head_size=6, max_positions=4096):
        super().__init__()
        self.half = head_size // 2
        rates = [
            math.pow(10000.0, -2.0 * i / head_size) for i in range(self.half)
        ]
        rates = torch.tensor(rates, dtype=torch.float64)
        steps = torch.arange(max_positions, dtype=torch.float64)
        angles = torch.outer(steps, rates)
        # no buffers: they would lose digits with the weights
        self.cos_cache, self.sin_cache = angles.cos(), angles.sin()

    def halves(self, x, past):
        stop = past + x.shape[2]
        if stop > self.cos_cache.shape[0]:
            raise IndexError(f"no constants for position {stop - 1}")
        cos = self.cos_cache[past:stop].to(x)
        sin = self.sin_cache[past:stop].to(x)
        real, imaginary = x[..., : self.half], x[..., self.half :]
        yield real * cos - imaginary * sin
        yield real * sin + imaginary * cos

    def forward(self, x, past=0):
        return torch.cat(list(self.halves(x, past)), dim=3)


PATIENT = RotaryConstants()
FACTS = {
    "pairs": "halves",
    "layout": "BHND",
    "told": "offset",
    "name": "past",
    "width": 6,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"x": "b h n 6", "past": "int s"}
