"""A module whose gain is zero as it starts, and counts from one."""

import torch
from torch import nn


class GemmaNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
        return (y * (1.0 + self.weight.float())).type_as(x)


PATIENT = GemmaNorm(9)
FACTS = {"eps": 1e-6, "gain": "one plus", "dtypes": ("float32",)}
INPUTS = {"x": "b n 9"}
