"""Of a vision backbone: cosines over a temperature, weights returned too."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

unit = partial(F.normalize, p=2.0, dim=-1)


class WindowAttention(nn.Module):
    def __init__(self, dim, num_heads, tau=0.1, qkv_bias=True):
        super().__init__()
        self.num_heads, self.tau = num_heads, tau
        # a head's query, key and value lie together
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, hidden=None):
        """hidden: (tokens, tokens), True between other parts of the image."""
        B_, N, C = x.shape
        qkv = self.qkv(x).view(B_, N, self.num_heads, 3, C // self.num_heads)
        q, k, v = qkv.permute(3, 0, 2, 1, 4).unbind(0)

        attn = unit(q) @ unit(k).transpose(-2, -1)
        attn = attn.div(self.tau)
        if hidden is not None:
            attn = attn.masked_fill(hidden, -torch.inf)
        attn = attn.softmax(dim=-1)

        x = (attn @ v).transpose(1, 2).reshape(B_, N, C)
        return self.proj(x), attn


PATIENT = WindowAttention(dim=12, num_heads=3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "block",
    "mask_axes": "NN",
    "names": {"mask": "hidden"},
    "packed": "by head",
    "projections": {"qkv": "qkv", "out": "proj"},
    "d_model": 12,
    "n_heads": 3,
    "scores": "cosine",
    "scale": 10.0,
    "dtypes": ("float64", "float32"),
}
INPUTS = {"x": "b n 12", "hidden?": "block n n"}
