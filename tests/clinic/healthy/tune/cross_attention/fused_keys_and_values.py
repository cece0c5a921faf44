"""Keys and values in one matrix, as in a picture generator."""

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, dim, context_dim, heads, dim_head):
        super().__init__()
        inner = heads * dim_head
        self.heads = heads
        self.scale = dim_head**-0.5
        self.to_q = nn.Linear(dim, inner, bias=False)
        self.to_kv = nn.Linear(context_dim, 2 * inner, bias=False)
        self.to_out = nn.Linear(inner, dim)

    def forward(self, x, context):
        q = self.to_q(x)
        k, v = self.to_kv(context).chunk(2, dim=-1)
        q, k, v = (
            t.unflatten(-1, (self.heads, -1)).permute(0, 2, 1, 3)
            for t in (q, k, v)
        )
        sim = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        attn = sim.softmax(dim=-1)
        out = torch.einsum("bhij,bhjd->bhid", attn, v)
        return self.to_out(out.permute(0, 2, 1, 3).flatten(2))


PATIENT = CrossAttention(10, 8, 3, 4)
FACTS = {"layout": "BND", "n_heads": 3}
INPUTS = {"x": "b n 10", "context": "b m 8"}
