"""A decoder's look at its memory; padded words are hidden by key."""

import torch.nn.functional as F
from torch import nn


class MemoryAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(self, x, memory, key_padding_mask=None):
        q = self.split(self.q_proj(x))
        k, v = self.split(self.k_proj(memory)), self.split(self.v_proj(memory))
        mask = None
        if key_padding_mask is not None:
            mask = ~key_padding_mask[:, None, None, :]
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out_proj(out.transpose(1, 2).flatten(-2))


PATIENT = MemoryAttention(12, 2)
FACTS = {
    "layout": "BND",
    "padding": "block",
    "empty_row": "zeros",
    "n_heads": 2,
}
INPUTS = {
    "x": "b n 12",
    "memory": "b m 12",
    "key_padding_mask?": "padding b m",
}
