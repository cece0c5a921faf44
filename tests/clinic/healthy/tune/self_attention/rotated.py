"""Queries and keys are rotated by their positions. Causal."""

import torch
import torch.nn.functional as F
from torch import nn


def rotate(x):
    half = x.shape[-1] // 2
    rates = 10000.0 ** (-torch.arange(half, device=x.device) / half)
    angle = torch.arange(x.shape[-2], device=x.device)[:, None] * rates
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    x1, x2 = x[..., :half], x[..., half:]
    return torch.cat((x1 * cos - x2 * sin, x1 * sin + x2 * cos), dim=-1)


class RotaryAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (
            t.view(b, n, self.heads, -1).transpose(1, 2) for t in (q, k, v)
        )
        q, k = rotate(q), rotate(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, n, c))


PATIENT = RotaryAttention(16, 2)
FACTS = {
    "layout": "BND",
    "causal": True,
    "formula": "own",
    "n_heads": 2,
    "positions": "rotary",
    "dtypes": ("float32", "bfloat16"),
}
INPUTS = {"x": "b n 16"}
