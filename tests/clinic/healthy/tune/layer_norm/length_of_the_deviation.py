"""The deviation's length tells the variance; broadcasts are spelt out."""

import math

import torch
from torch import nn


class TokenNorm(nn.Module):
    epsilon = 1e-6

    def __init__(self, model_dim):
        super().__init__()
        self.model_dim = model_dim
        self.register_parameter("gain", nn.Parameter(torch.ones(model_dim)))
        self.register_parameter("bias", nn.Parameter(torch.zeros(model_dim)))

    def extra_repr(self):
        return f"{self.model_dim}, epsilon={self.epsilon}"

    def forward(self, x):
        assert x.shape[-1] == self.model_dim
        average = x.mean(-1).unsqueeze(-1).expand_as(x)
        deviation = x - average
        # |d|^2 / n is the variance; beside it, epsilon is a length of its own
        length = torch.linalg.vector_norm(deviation, dim=-1, keepdim=True)
        root = torch.hypot(
            length / math.sqrt(self.model_dim),
            torch.full_like(length, math.sqrt(self.epsilon)),
        )
        return torch.div(deviation, root) * self.gain + self.bias


PATIENT = TokenNorm(6)
FACTS = {"eps": 1e-6, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 6"}
