"""Words look at media through a gate that is shut at first, and stay."""

import torch
from torch import einsum, nn


def exists(val):
    return val is not None


class MaskedCrossAttention(nn.Module):
    def __init__(self, *, dim, dim_visual, dim_head=64, heads=8):
        super().__init__()
        self.scale = dim_head**-0.5
        self.heads = heads
        inner_dim = dim_head * heads

        self.norm = nn.LayerNorm(dim)
        self.to_q = nn.Linear(dim, inner_dim, bias=False)
        self.to_kv = nn.Linear(dim_visual, inner_dim * 2, bias=False)
        self.to_out = nn.Linear(inner_dim, dim, bias=False)

    def split(self, t):
        b, n, _ = t.shape
        return t.view(b, n, self.heads, -1).transpose(1, 2)

    def forward(self, x, media, text_to_media=None):
        x = self.norm(x)
        q = self.to_q(x)
        k, v = self.to_kv(media).chunk(2, dim=-1)
        q, k, v = map(self.split, (q, k, v))
        q = q * self.scale

        sim = einsum("b h i d, b h j d -> b h i j", q, k)
        if exists(text_to_media):
            text_to_media = text_to_media.unsqueeze(1)
            sim = sim.masked_fill(~text_to_media, -torch.finfo(sim.dtype).max)
        sim = sim - sim.amax(dim=-1, keepdim=True).detach()
        attn = sim.softmax(dim=-1)
        if exists(text_to_media):
            # words before any picture see nothing at all
            without_media = ~text_to_media.any(dim=-1, keepdim=True)
            attn = attn.masked_fill(without_media, 0.0)

        out = einsum("b h i j, b h j d -> b h i d", attn, v)
        out = out.transpose(1, 2).flatten(2)
        return self.to_out(out)


class GatedCrossAttentionBlock(nn.Module):
    def __init__(self, **kwargs):
        super().__init__()
        self.attn = MaskedCrossAttention(**kwargs)
        self.attn_gate = nn.Parameter(torch.tensor([0.0]))

    def forward(self, x, media, text_to_media=None):
        attended = self.attn(x, media, text_to_media)
        return attended * self.attn_gate.tanh() + x


PATIENT = GatedCrossAttentionBlock(dim=10, dim_visual=7, dim_head=4, heads=3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "mask": "keep",
    "mask_axes": "BNN",
    "empty_row": "zeros",
    "n_heads": 3,
}
INPUTS = {
    "x": "b n 10",
    "media": "b m 7",
    "text_to_media?": "keep b n m",
}
