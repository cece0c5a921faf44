"""The length of a token over the root of its width."""

import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.d = d
        self.eps = eps
        self.g = nn.Parameter(torch.ones(d))

    def forward(self, x):
        power = torch.sum(x * x, dim=-1, keepdim=True) / self.d
        return self.g * (x / torch.sqrt(power + self.eps))


PATIENT = RMSNorm(10)
FACTS = {"eps": 1e-6, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 10"}
