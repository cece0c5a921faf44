"""Matrices (in, out) at the right of x, kept in one tensor of three."""

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, width=10, heads=2):
        super().__init__()
        self.h = heads
        self.maps = nn.Parameter(torch.randn(3, width, width) * width**-0.5)
        self.back = nn.Parameter(torch.randn(width, width) * width**-0.5)

    def forward(self, x):
        q, k, v = (x @ m.T for m in self.maps)
        q, k, v = (
            t.unflatten(-1, (self.h, -1)).movedim(-2, -3) for t in (q, k, v)
        )
        w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return (w @ v).movedim(-3, -2).flatten(-2) @ self.back.T


PATIENT = Head()
FACTS = {"layout": "BND", "causal": False, "n_heads": 2}
INPUTS = {"x": "b n 10"}
