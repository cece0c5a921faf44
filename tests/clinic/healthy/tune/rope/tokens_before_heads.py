"""For (batch, tokens, heads, features), with pairs written in place."""

import torch


def rope(x, start=0):
    _, n, _, d = x.shape
    rate = torch.pow(10000.0, -torch.arange(0, d, 2, dtype=torch.float64) / d)
    steps = torch.arange(start, start + n, dtype=torch.float64)
    angle = (steps[:, None] * rate)[None, :, None, :]
    out = torch.empty_like(x)
    cos, sin = torch.cos(angle).to(x.dtype), torch.sin(angle).to(x.dtype)
    out[..., ::2] = x[..., ::2] * cos - x[..., 1::2] * sin
    out[..., 1::2] = x[..., ::2] * sin + x[..., 1::2] * cos
    return out


PATIENT = rope
FACTS = {"pairs": "neighbours", "layout": "BNHD"}
INPUTS = {"x": "b n h 2*d", "start": "int s"}
SIZES = {"s": (0, 9)}
