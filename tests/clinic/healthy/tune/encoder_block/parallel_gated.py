"""Attention and a gated network side by side, one norm for both."""

import torch.nn.functional as F
from torch import nn


class ParallelBlock(nn.Module):
    def __init__(self, dim=12, n_heads=3, hidden=20):
        super().__init__()
        self.n_heads = n_heads
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.gate_up = nn.Linear(dim, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        h = self.norm(x)
        q, k, v = (
            self.qkv(h).view(b, n, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        )
        a = F.scaled_dot_product_attention(q, k, v)
        a = self.proj(a.transpose(1, 2).reshape(b, n, d))
        gate, up = self.gate_up(h).chunk(2, dim=-1)
        return x + a + self.down(F.silu(gate) * up)


PATIENT = ParallelBlock()
FACTS = {"layout": "BND", "n_heads": 3}
INPUTS = {"x": "b n 12"}
