"""Halves make pairs: x cos + (the other half, one sign turned) sin."""

import torch


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rope(x, offset=0):
    d = x.shape[-1]
    inv_freq = 10000 ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
    position = torch.arange(x.shape[-2], dtype=torch.float64) + offset
    angle = torch.outer(position, inv_freq)
    emb = torch.cat((angle, angle), dim=-1)
    cos, sin = emb.cos().to(x.dtype), emb.sin().to(x.dtype)
    return x * cos + rotate_half(x) * sin


PATIENT = apply_rope
FACTS = {"pairs": "halves", "layout": "BHND"}
INPUTS = {"x": "b h n 2*d", "offset": "int s"}
SIZES = {"s": (0, 9)}
