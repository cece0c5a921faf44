"""The tutorial's layout: tokens, texts, features."""

import torch
from torch import nn


class LearnedPositions(nn.Module):
    def __init__(self, longest, width):
        super().__init__()
        self.table = nn.Parameter(torch.randn(longest, width) * 0.5)

    def forward(self, x):
        return x + self.table[: x.shape[0], None, :]


PATIENT = LearnedPositions(16, 6)
FACTS = {"table": PATIENT.table.detach(), "layout": "NBD"}
INPUTS = {"x": "n b 6"}
SIZES = {"n": (1, 16)}
