"""Three inputs, as a library's layer takes them; grouped keys."""

import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.width = dim // heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, kv_heads * self.width)
        self.v_proj = nn.Linear(dim, kv_heads * self.width)
        self.o_proj = nn.Linear(dim, dim)

    def forward(self, q, k, v):
        b, n, _ = q.shape
        m = k.shape[1]
        q = self.q_proj(q).view(b, n, self.heads, self.width)
        k = self.k_proj(k).view(b, m, self.kv_heads, self.width)
        v = self.v_proj(v).view(b, m, self.kv_heads, self.width)
        group = self.heads // self.kv_heads
        k = k.repeat_interleave(group, dim=2)
        v = v.repeat_interleave(group, dim=2)
        scores = torch.einsum("bnhd,bmhd->bhnm", q, k) / self.width**0.5
        out = torch.einsum("bhnm,bmhd->bnhd", scores.softmax(dim=-1), v)
        return self.o_proj(out.flatten(2))


PATIENT = Pool(12, 6, 2)
FACTS = {"layout": "BND", "n_heads": 6}
INPUTS = {"q": "b n 12", "k": "b m 12", "v": "=k"}
