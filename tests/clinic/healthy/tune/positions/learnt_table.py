"""An embedding of the positions is added."""

import torch
from torch import nn


class PositionEmbedding(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.wpe = nn.Embedding(max_len, d_model)

    def forward(self, x):
        positions = torch.arange(x.size(1), device=x.device)
        return x + self.wpe(positions)


PATIENT = PositionEmbedding(16, 6)
FACTS = {"table": PATIENT.wpe.weight.detach(), "layout": "BND"}
INPUTS = {"x": "b n 6"}
SIZES = {"n": (1, 16)}
