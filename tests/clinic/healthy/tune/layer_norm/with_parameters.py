"""Mean and variance of each token, a gain and a shift."""

import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        return self.a_2 * (x - mean) / torch.sqrt(var + self.eps) + self.b_2


PATIENT = LayerNorm(7)
FACTS = {"eps": 1e-6, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 7"}
