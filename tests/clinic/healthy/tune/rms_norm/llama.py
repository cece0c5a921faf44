"""Normed in float32 whatever comes in, then the gain."""

import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float()).type_as(x)
        return output * self.weight


PATIENT = RMSNorm(8)
FACTS = {
    "eps": 1e-6,
    "precision": "float32",
    "dtypes": ("float32", "bfloat16"),
}
INPUTS = {"x": "b n 8"}
