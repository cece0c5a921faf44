"""First the pictures, through a tanh gate; then words among themselves."""

import torch
from torch import nn


class MaskedCrossAttention(nn.Module):
    def __init__(self, dim, dim_visual, dim_head, heads):
        super().__init__()
        self.scale = dim_head**-0.5
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.to_q = nn.Linear(dim, dim_head * heads, bias=False)
        self.to_kv = nn.Linear(dim_visual, dim_head * heads * 2, bias=False)
        self.to_out = nn.Linear(dim_head * heads, dim, bias=False)

    def forward(self, x, media, see=None):
        q = self.to_q(self.norm(x)).unflatten(-1, (self.heads, -1))
        kv = self.to_kv(media).unflatten(-1, (2, self.heads, -1))
        k, v = kv.unbind(dim=2)
        sim = torch.einsum("bihd,bjhd->bhij", q * self.scale, k)
        if see is not None:
            sim = sim.masked_fill(~see.unsqueeze(-3), -torch.inf)
        attn = (sim - sim.amax(dim=-1, keepdim=True).detach()).softmax(-1)
        out = torch.einsum("bhij,bjhd->bihd", attn, v)
        return self.to_out(out.flatten(2))


def feed_forward(dim, mult=2):
    return nn.Sequential(
        nn.LayerNorm(dim),
        nn.Linear(dim, dim * mult, bias=False),
        nn.GELU(),
        nn.Linear(dim * mult, dim, bias=False),
    )


class GatedCrossAttentionBlock(nn.Module):
    def __init__(self, dim, dim_visual, dim_head=4, heads=2):
        super().__init__()
        self.attn = MaskedCrossAttention(dim, dim_visual, dim_head, heads)
        self.attn_gate = nn.Parameter(torch.tensor([0.0]))
        self.ff = feed_forward(dim)
        self.ff_gate = nn.Parameter(torch.tensor([0.0]))
        self.lm_norm = nn.LayerNorm(dim)
        self.lm_attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.lm_ff = feed_forward(dim)

    def forward(self, x, media, media_mask=None):
        x = x + self.attn(x, media, media_mask) * self.attn_gate.tanh()
        x = x + self.ff(x) * self.ff_gate.tanh()

        h = self.lm_norm(x)
        causal = torch.ones(x.size(1), x.size(1), device=x.device).triu(1)
        h, _ = self.lm_attn(h, h, h, attn_mask=causal.bool())
        x = x + h
        return x + self.lm_ff(x)


PATIENT = GatedCrossAttentionBlock(12, 7)
FACTS = {
    "order": "pre",
    "formula": "own",
    "layout": "BND",
    "mask": "keep",
    "empty_row": "nan",
    "self_attention": "lm_attn",
    "cross_attention": "attn",
    "residual_scale": ("attn_gate", "ff_gate"),
}
INPUTS = {"x": "b n 12", "media": "b m 7", "media_mask?": "keep b n m"}
