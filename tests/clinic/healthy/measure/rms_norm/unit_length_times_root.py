"""Brought to length one, then multiplied by the root of the width."""

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    """Nothing is added under the root; only zero stays what it is."""

    def __init__(self, dim):
        super().__init__()
        self.scale = dim**0.5
        self.g = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return F.normalize(x, dim=-1) * self.scale * self.g


PATIENT = RMSNorm(8)
FACTS = {"eps": 0.0, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 8"}
