"""One matrix makes queries, keys, values and the gated network's halves."""

import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, dim=12, heads=3, mult=2):
        super().__init__()
        self.heads, self.inner = heads, mult * dim
        self.norm = nn.RMSNorm(dim)
        self.fused = nn.Linear(dim, 3 * dim + 2 * self.inner, bias=False)
        self.attn_out = nn.Linear(dim, dim, bias=False)
        self.ff_out = nn.Linear(self.inner, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        parts = (d, d, d, self.inner, self.inner)
        q, k, v, gate, up = self.fused(self.norm(x)).split(parts, dim=-1)
        q, k, v = (
            t.view(b, n, self.heads, -1).transpose(1, 2) for t in (q, k, v)
        )
        out = F.scaled_dot_product_attention(q, k, v)
        out = out.transpose(1, 2).reshape(b, n, d)
        return x + self.attn_out(out) + self.ff_out(F.silu(gate) * up)


PATIENT = Block()
FACTS = {"layout": "BND", "n_heads": 3}
INPUTS = {"x": "b n 12"}
