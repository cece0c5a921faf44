"""PyTorch's function in a module whose bias may be left out."""

import torch
import torch.nn as nn
from torch.nn import functional as F


class LayerNorm(nn.Module):
    """PyTorch's own used to have no such switch."""

    def __init__(self, ndim, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))
        self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


PATIENT = LayerNorm(12, bias=True)
FACTS = {"eps": 1e-5}
INPUTS = {"x": "b n 12"}
