"""An exam's answer: one matrix, its columns values, queries and keys."""

import torch
import torch.nn as nn


class SelfAttention(nn.Module):
    def __init__(self, emb, heads, mask=False):
        super().__init__()
        self.emb, self.heads, self.mask = emb, heads, mask
        self.W = nn.Parameter(torch.randn(emb, 3 * emb) / emb**0.5)
        self.unifyheads = nn.Parameter(torch.randn(emb, emb) / emb**0.5)

    def forward(self, x):
        b, t, e = x.size()
        h, s = self.heads, e // self.heads

        # a) map, and tell the three apart
        vqk = x.matmul(self.W)
        values = vqk[:, :, :e]
        queries = vqk[:, :, e : 2 * e]
        keys = vqk[:, :, 2 * e :]

        # b) fold heads into the batch
        def fold(m):
            m = m.contiguous().view(b, t, h, s)
            return m.transpose(1, 2).contiguous().view(b * h, t, s)

        values, queries, keys = fold(values), fold(queries), fold(keys)

        # c) raw weights
        w = torch.bmm(queries, keys.transpose(1, 2)) / s**0.5
        assert w.size() == (b * h, t, t)
        if self.mask:
            rows, cols = torch.triu_indices(t, t, offset=1)
            w = w.clone()
            w[:, rows, cols] = float("-inf")
        w = torch.softmax(w, dim=2)

        # d) sum, unfold, unify
        y = torch.bmm(w, values).view(b, h, t, s)
        y = y.transpose(1, 2).contiguous().view(b, t, e)
        return y.matmul(self.unifyheads)


PATIENT = SelfAttention(12, 2, mask=True)
FACTS = {
    "layout": "BND",
    "causal": True,
    "order": "vqk",
    "packed": "by part",
    "n_heads": 2,
    "projections": {"qkv": "W", "out": "unifyheads"},
}
INPUTS = {"x": "b n 12"}
