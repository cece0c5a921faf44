"""A module that knows its axis."""

import torch
from torch import nn


class Softmax(nn.Module):
    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        shifted = x - torch.amax(x, dim=self.dim, keepdim=True)
        powers = shifted.exp()
        total = powers.sum(dim=self.dim, keepdim=True)
        return powers * total.reciprocal()


PATIENT = Softmax()
FACTS = {"empty_row": "nan"}
INPUTS = {"x": "b n m"}
LOUDEST = 1000
