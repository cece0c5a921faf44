"""Pictures told to a frozen language model: a gate of tanh, shut at first."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class MaskedCrossAttention(nn.Module):
    """Text asks, pictures answer; what is told passes a gate."""

    def __init__(self, dim, dim_visual, n_heads=4, eps=1e-5):
        super().__init__()
        self.n_heads = n_heads
        self.head_dim = dim // n_heads
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.kv_proj = nn.Linear(dim_visual, 2 * dim, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)
        self.attn_gate = nn.Parameter(torch.zeros(1))

    def forward(self, media, x, media_locations=None):
        """media_locations: (batch, text, media), True where one is seen.

        A word before the first picture sees none and is told nothing.
        """
        b, n, _ = x.shape
        q = self.q_proj(self.norm(x))
        k, v = self.kv_proj(media).chunk(2, dim=-1)
        q, k, v = (
            t.view(b, t.shape[1], self.n_heads, self.head_dim).transpose(1, 2)
            for t in (q, k, v)
        )
        sim = q @ k.transpose(-2, -1) * self.head_dim**-0.5
        if media_locations is not None:
            unseen = ~media_locations[:, None]
            sim = sim.masked_fill(unseen, torch.finfo(sim.dtype).min)
            attn = F.softmax(sim, dim=-1).masked_fill(unseen, 0.0)
        else:
            attn = F.softmax(sim, dim=-1)
        told = (attn @ v).transpose(1, 2).reshape(b, n, -1)
        return self.o_proj(told) * self.attn_gate.tanh()


PATIENT = MaskedCrossAttention(dim=12, dim_visual=9, n_heads=4)
FACTS = {
    "layout": "BND",
    "formula": "own",
    "mask": "keep",
    "mask_axes": "BNN",
    "names": {"context": "media", "mask": "media_locations"},
    "d_model": 12,
    "n_heads": 4,
    "empty_row": "zeros",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "media": "b m 9",
    "x": "b n 12",
    "media_locations?": "keep b n m",
}
