"""Fewer key heads are kept, and repeated when they are read."""

import torch
from torch import nn


class GroupedDecoder(nn.Module):
    def __init__(self, dim, n_heads, n_kv):
        super().__init__()
        self.n_heads, self.n_kv, self.size = n_heads, n_kv, dim // n_heads
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, n_kv * self.size, bias=False)
        self.v_proj = nn.Linear(dim, n_kv * self.size, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x, past=None):
        b, n, _ = x.shape
        q = self.q_proj(x).view(b, n, self.n_heads, self.size).transpose(1, 2)
        k = self.k_proj(x).view(b, n, self.n_kv, self.size).transpose(1, 2)
        v = self.v_proj(x).view(b, n, self.n_kv, self.size).transpose(1, 2)
        if past is not None:
            k = torch.cat((past["k"], k), dim=2)
            v = torch.cat((past["v"], v), dim=2)
        new = {"k": k, "v": v}
        times = self.n_heads // self.n_kv
        k = k.repeat_interleave(times, dim=1)
        v = v.repeat_interleave(times, dim=1)
        m = k.size(2)
        future = torch.ones(n, m, dtype=torch.bool).triu(m - n + 1)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.size**-0.5
        scores = scores.masked_fill(future, float("-inf"))
        out = torch.matmul(scores.softmax(dim=-1), v)
        return self.o_proj(out.transpose(1, 2).reshape(b, n, -1)), new


PATIENT = GroupedDecoder(12, 6, 2)
FACTS = {"d_model": 12, "call": lambda layer, x, cache: layer(x, cache)}
INPUTS = {"x": "b n 12"}
