"""Bare matrices (out, in), as torch.nn.functional.linear wants them."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, d=12, heads=3):
        super().__init__()
        self.heads = heads
        self.Wq = nn.Parameter(torch.randn(d, d) / d**0.5)
        self.Wk = nn.Parameter(torch.randn(d, d) / d**0.5)
        self.Wv = nn.Parameter(torch.randn(d, d) / d**0.5)
        self.Wo = nn.Parameter(torch.randn(d, d) / d**0.5)

    def forward(self, x, mask=None):
        b, n, d = x.shape

        def cut(w):
            return F.linear(x, w).view(b, n, self.heads, -1).transpose(1, 2)

        q, k, v = cut(self.Wq), cut(self.Wk), cut(self.Wv)
        s = q @ k.transpose(-1, -2) * (d // self.heads) ** -0.5
        if mask is not None:
            s = s.masked_fill(mask == 0, -1e9)
        o = s.softmax(-1) @ v
        return F.linear(o.transpose(1, 2).reshape(b, n, d), self.Wo)


PATIENT = Block()
FACTS = {"layout": "BND", "causal": False, "n_heads": 3, "mask": "keep"}
INPUTS = {"x": "b n 12", "mask?": "keep n n"}
