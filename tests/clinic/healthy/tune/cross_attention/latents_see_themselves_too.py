"""A resampler: keys are those of the picture, and of the latents behind."""

import torch
from torch import einsum, nn


def exists(val):
    return val is not None


class ResamplerAttention(nn.Module):
    def __init__(self, *, dim, dim_head=4, heads=3):
        super().__init__()
        self.scale = dim_head**-0.5
        self.heads = heads
        inner = dim_head * heads
        self.norm_media = nn.LayerNorm(dim)
        self.norm_latents = nn.LayerNorm(dim)
        self.to_q = nn.Linear(dim, inner, bias=False)
        self.to_kv = nn.Linear(dim, inner * 2, bias=False)
        self.to_out = nn.Linear(inner, dim, bias=False)

    def forward(self, latents, x, mask=None):
        """Latents (b, n, d), a picture (b, m, d), True where it is real."""
        x, latents = self.norm_media(x), self.norm_latents(latents)
        h = self.heads
        q = self.to_q(latents).unflatten(-1, (h, -1)) * self.scale
        both = torch.cat((x, latents), dim=-2)
        k, v = self.to_kv(both).unflatten(-1, (2, h, -1)).unbind(-3)
        sim = einsum("b i h d, b j h d -> b h i j", q, k)
        if exists(mask):
            mask = nn.functional.pad(mask, (0, latents.shape[1]), value=True)
            sim = sim.masked_fill(~mask[:, None, None, :], -torch.inf)
        attn = sim.softmax(dim=-1)
        out = einsum("b h i j, b j h d -> b i h d", attn, v)
        return self.to_out(out.flatten(-2))


PATIENT = ResamplerAttention(dim=10)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "padding": "keep",
    "n_heads": 3,
}
INPUTS = {"latents": "b n 10", "x": "b m 10", "mask?": "real b m"}
