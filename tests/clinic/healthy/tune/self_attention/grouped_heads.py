"""Fewer heads of keys and values than of queries. Causal by flag."""

import torch.nn.functional as F
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, dim, n_heads, n_kv_heads):
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.head_dim = dim // n_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)

    def forward(self, x, causal=False):
        b, n, _ = x.shape
        q = self.wq(x).view(b, n, self.n_heads, self.head_dim)
        k = self.wk(x).view(b, n, self.n_kv_heads, self.head_dim)
        v = self.wv(x).view(b, n, self.n_kv_heads, self.head_dim)
        repeats = self.n_heads // self.n_kv_heads
        k = k.repeat_interleave(repeats, dim=2)
        v = v.repeat_interleave(repeats, dim=2)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        out = out.transpose(1, 2).reshape(b, n, -1)
        return self.wo(out)


PATIENT = GroupedQueryAttention(24, 6, 2)
FACTS = {"layout": "BND", "causal": False, "n_heads": 6}
INPUTS = {"x": "b n 24", "causal?": "true"}
