"""Tokens are handed to batch norm as if they were its channels."""

import torch
import torch.nn.functional as F
from torch import nn


class LayerNorm1d(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))
        self.beta = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x):
        channels = x.reshape(1, -1, x.shape[-1])
        normed = F.batch_norm(
            channels, None, None, training=True, eps=self.eps
        )
        return normed.view_as(x) * self.gamma + self.beta


PATIENT = LayerNorm1d(10)
FACTS = {"eps": 1e-5, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 10"}
