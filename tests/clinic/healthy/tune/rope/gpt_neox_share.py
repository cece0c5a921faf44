"""The first quarter of a head's features is turned, the rest passes."""

import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, head_size, rotary_pct=0.25, base=10000.0):
        super().__init__()
        self.ndims = int(head_size * rotary_pct)
        steps = torch.arange(0, self.ndims, 2, dtype=torch.float64)
        self.register_buffer("inv_freq", base ** (-steps / self.ndims))

    def forward(self, x, offset=0):
        t = torch.arange(offset, offset + x.shape[-2], dtype=torch.float64)
        freqs = torch.einsum("i,j->ij", t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        cos, sin = emb.cos().to(x.dtype), emb.sin().to(x.dtype)
        rot, rest = x[..., : self.ndims], x[..., self.ndims :]
        first, second = rot.chunk(2, dim=-1)
        turned = torch.cat((-second, first), dim=-1)
        return torch.cat((rot * cos + turned * sin, rest), dim=-1)


PATIENT = RotaryEmbedding(16)
FACTS = {"pairs": "halves", "layout": "BHND", "width": 16, "part": 0.25}
INPUTS = {"x": "b h n 16", "offset": "int s"}
SIZES = {"s": (0, 9)}
