"""A module of options: a mask by key, a bias, a causal buffer on demand."""

import torch
from torch import einsum, nn


def exists(val):
    return val is not None


def default(val, d):
    return val if exists(val) else d


class Attend(nn.Module):
    def __init__(self, *, dropout=0.0, scale=None):
        super().__init__()
        self.scale = scale
        self.attn_dropout = nn.Dropout(dropout)
        self.attn_fn = nn.Softmax(dim=-1)

    @staticmethod
    def create_causal_mask(i, j, device):
        return torch.ones((i, j), device=device, dtype=torch.bool).triu(
            j - i + 1
        )

    def forward(self, q, k, v, mask=None, attn_bias=None, causal=False):
        i, j, device = q.shape[-2], k.shape[-2], q.device
        scale = default(self.scale, q.shape[-1] ** -0.5)

        sim = einsum("b h i d, b h j d -> b h i j", q, k) * scale
        if exists(attn_bias):
            sim = sim + attn_bias

        mask_value = -torch.finfo(sim.dtype).max
        if exists(mask):
            sim = sim.masked_fill(~mask[:, None, None, :], mask_value)
        if causal:
            causal_mask = self.create_causal_mask(i, j, device=device)
            sim = sim.masked_fill(causal_mask, mask_value)

        attn = self.attn_fn(sim)
        attn = self.attn_dropout(attn)
        return einsum("b h i j, b h j d -> b h i d", attn, v)


PATIENT = Attend()
FACTS = {
    "layout": "BHND",
    "mask": "keep",
    "mask_axes": "BN",
    "alignment": "last",
    "empty_row": "average",
}
INPUTS = {
    "q": "b h n d",
    "k": "b h n+2 d",
    "v": "b h n+2 e",
    "attn_bias?": "bias h n n+2",
}
OTHER_INPUTS = [
    {"q": "b h n d", "k": "b h m d", "v": "b h m e", "mask?": "keep b m"},
    {"q": "b h n d", "k": "b h n d", "v": "b h n e", "causal": "true"},
]
