"""A module whose gain is called g and whose offset is called b."""

import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, n_state, epsilon=1e-5):
        super().__init__()
        self.g = nn.Parameter(torch.rand(n_state) + 0.5)
        self.b = nn.Parameter(torch.randn(n_state))
        self.epsilon = epsilon

    def forward(self, x):
        u = x.mean(-1, keepdim=True)
        s = ((x - u) ** 2).mean(-1, keepdim=True)
        return self.g * (x - u) / (s + self.epsilon).sqrt() + self.b


PATIENT = Norm(11)
FACTS = {"eps": 1e-5, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 11"}
