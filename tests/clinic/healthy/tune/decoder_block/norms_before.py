"""Looks at itself, at a memory, then works; the causal mask is its own."""

import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.to_q = nn.Linear(dim, dim)
        self.to_k = nn.Linear(dim, dim)
        self.to_v = nn.Linear(dim, dim)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x, context=None, mask=None):
        context = x if context is None else context
        q, k, v = self.to_q(x), self.to_k(context), self.to_v(context)
        q, k, v = (
            t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for t in (q, k, v)
        )
        out = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=self.causal
        )
        return self.to_out(out.transpose(1, 2).flatten(2))


class DecoderBlock(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.self_attn = Attention(dim, heads, causal=True)
        self.cross_attn = Attention(dim, heads)
        self.ff = nn.Sequential(
            nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)
        )
        self.norm1 = nn.LayerNorm(dim)
        self.norm2 = nn.LayerNorm(dim)
        self.norm3 = nn.LayerNorm(dim)

    def forward(self, x, memory, memory_mask=None):
        x = x + self.self_attn(self.norm1(x))
        x = x + self.cross_attn(self.norm2(x), memory, mask=memory_mask)
        x = x + self.ff(self.norm3(x))
        return x


PATIENT = DecoderBlock(12, 3, 17)
FACTS = {"order": "pre", "mask": "keep", "layout": "BND"}
INPUTS = {"x": "b n 12", "memory": "b m 12", "memory_mask?": "keep n m"}
