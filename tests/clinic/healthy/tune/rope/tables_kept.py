"""A module that keeps cosines and sines for all positions."""

import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim, max_len):
        super().__init__()
        inv_freq = 1.0 / 10000 ** (torch.arange(0, dim, 2).double() / dim)
        angle = torch.outer(torch.arange(max_len).double(), inv_freq)
        self.register_buffer("cos_table", angle.cos(), persistent=False)
        self.register_buffer("sin_table", angle.sin(), persistent=False)

    def forward(self, x, offset=0):
        end = offset + x.shape[-2]
        cos = self.cos_table[offset:end].to(x.dtype)
        sin = self.sin_table[offset:end].to(x.dtype)
        x1, x2 = x.chunk(2, dim=-1)
        return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)


PATIENT = Rotary(8, 32)
FACTS = {"pairs": "halves", "layout": "BHND", "width": 8, "longest": 32}
INPUTS = {"x": "b h n 8", "offset": "int s"}
SIZES = {"s": (0, 9)}
