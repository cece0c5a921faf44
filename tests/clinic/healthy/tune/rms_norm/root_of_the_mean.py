"""Divided by the root of the mean square."""

import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.eps = 1e-5

    def forward(self, x):
        rms = (x.square().mean(dim=-1, keepdim=True) + self.eps).sqrt()
        return x / rms * self.gain


PATIENT = RMSNorm(6)
FACTS = {"eps": 1e-5, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 6"}
