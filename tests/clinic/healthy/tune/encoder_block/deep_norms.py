"""Norms behind sums in which the input counts more than the sublayer."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ENCODER_LAYERS = 6


class SelfAttention(nn.Module):
    def __init__(self, dim, heads, beta):
        super().__init__()
        self.heads = heads
        self.to_qk = nn.Linear(dim, 2 * dim)
        self.to_v = nn.Linear(dim, dim)
        self.to_out = nn.Linear(dim, dim)
        nn.init.xavier_normal_(self.to_v.weight, gain=beta)
        nn.init.xavier_normal_(self.to_out.weight, gain=beta)

    def forward(self, x, attn_mask=None):
        q, k = self.to_qk(x).chunk(2, dim=-1)
        q, k, v = (
            torch.stack(t.chunk(self.heads, dim=-1), dim=1)
            for t in (q, k, self.to_v(x))
        )
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)
        return self.to_out(torch.cat(y.unbind(dim=1), dim=-1))


class DeepNormBlock(nn.Module):
    def __init__(self, dim, heads, hidden, layers=ENCODER_LAYERS):
        super().__init__()
        self.alpha = (2 * layers) ** 0.25
        beta = (8 * layers) ** -0.25
        self.attn = SelfAttention(dim, heads, beta)
        self.attn_norm = nn.LayerNorm(dim)
        self.ffn = nn.Sequential(
            nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)
        )
        for layer in (self.ffn[0], self.ffn[2]):
            nn.init.xavier_normal_(layer.weight, gain=beta)
        self.ffn_norm = nn.LayerNorm(dim)

    def forward(self, x, attn_mask=None):
        x = self.attn_norm(x * self.alpha + self.attn(x, attn_mask))
        return self.ffn_norm(x * self.alpha + self.ffn(x))


PATIENT = DeepNormBlock(12, 2, 18)
FACTS = {
    "order": "post",
    "formula": "own",
    "layout": "BND",
    "mask": "keep",
    "attention": "attn",
    "feed_forward": "ffn",
    "norms": ["attn_norm", "ffn_norm"],
    "residual_factor": 12**0.25,
}
INPUTS = {"x": "b n 12", "attn_mask?": "keep n n"}
