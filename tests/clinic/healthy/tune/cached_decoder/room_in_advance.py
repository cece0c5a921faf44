"""Tensors with room for all tokens, filled from the left."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads, room=64):
        super().__init__()
        self.heads, self.room = heads, room
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def begin(self, x):
        shape = x.size(0), self.room, self.heads, x.size(2) // self.heads
        return x.new_zeros(shape), x.new_zeros(shape), 0

    def forward(self, x, cache):
        b, n, _ = x.shape
        keys, values, start = cache or self.begin(x)
        end = start + n
        q = self.wq(x).view(b, n, self.heads, -1)
        keys, values = keys.clone(), values.clone()
        keys[:, start:end] = self.wk(x).view(b, n, self.heads, -1)
        values[:, start:end] = self.wv(x).view(b, n, self.heads, -1)
        k, v = keys[:, :end], values[:, :end]
        scores = torch.einsum("bnhd,bmhd->bhnm", q, k) * q.size(3) ** -0.5
        past = torch.arange(end) <= torch.arange(start, end)[:, None]
        scores = scores.where(past, torch.finfo(x.dtype).min)
        out = torch.einsum("bhnm,bmhd->bnhd", scores.softmax(dim=-1), v)
        return self.wo(out.flatten(2)), (keys, values, end)


PATIENT = Attention(12, 3)
FACTS = {"d_model": 12, "call": lambda layer, x, cache: layer(x, cache)}
INPUTS = {"x": "b n 12"}
