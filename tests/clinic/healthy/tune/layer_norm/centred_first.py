"""Centred, squared, averaged; an eps of GPT-2's."""

import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.eps = 1e-5
        self.scale = nn.Parameter(torch.ones(dim))
        self.shift = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        power = centred.pow(2).mean(dim=-1, keepdim=True)
        normed = centred * torch.rsqrt(power + self.eps)
        return normed * self.scale + self.shift


PATIENT = Norm(9)
FACTS = {"eps": 1e-5, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 9"}
