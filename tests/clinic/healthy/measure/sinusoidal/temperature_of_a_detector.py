"""As detectors have it for one axis: a sum counts, a temperature divides."""

import torch
from torch import nn


class PositionEmbeddingSine(nn.Module):
    """Of a picture's columns, none of which is padding here."""

    def __init__(self, temperature=10000):
        super().__init__()
        self.temperature = temperature

    def forward(self, length, num_pos_feats):
        there = torch.ones(length, dtype=torch.float32)
        x_embed = there.cumsum(0) - 1  # columns count from zero

        dim_t = torch.arange(num_pos_feats, dtype=torch.float32)
        pair = torch.div(dim_t, 2, rounding_mode="trunc")
        dim_t = self.temperature ** (2 * pair / num_pos_feats)

        pos_x = x_embed[:, None] / dim_t
        sines, cosines = pos_x[:, 0::2].sin(), pos_x[:, 1::2].cos()
        return torch.stack((sines, cosines), dim=2).flatten(1)


PATIENT = PositionEmbeddingSine()
FACTS = {"layout": "pairs", "dtypes": ("float32",)}
INPUTS = {"length": "int n", "num_pos_feats": "int 2*d"}
SIZES = {"n": (1, 300), "d": (2, 24)}
