"""Values are wider than queries and keys; the library does the middle."""

import torch.nn.functional as F
from torch import nn


def split_heads(t, h):
    """b n (h d) -> b h n d"""
    return t.reshape(*t.shape[:-1], h, -1).swapaxes(-3, -2)


def merge_heads(t):
    """b h n d -> b n (h d)"""
    return t.swapaxes(-3, -2).flatten(-2)


class CrossAttention(nn.Module):
    def __init__(self, dim, dim_latent, *, heads=4, dim_k=3, dim_v=5):
        super().__init__()
        self.heads = heads
        self.to_queries = nn.Linear(dim, heads * dim_k, bias=False)
        self.to_keys = nn.Linear(dim_latent, heads * dim_k, bias=False)
        self.to_values = nn.Linear(dim_latent, heads * dim_v, bias=False)
        self.unify_heads = nn.Linear(heads * dim_v, dim)

    def forward(self, x, *, latents, latent_mask=None):
        q = split_heads(self.to_queries(x), self.heads)
        k = split_heads(self.to_keys(latents), self.heads)
        v = split_heads(self.to_values(latents), self.heads)
        if latent_mask is not None:
            latent_mask = latent_mask[:, None, None, :]
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=latent_mask)
        return self.unify_heads(merge_heads(out))


PATIENT = CrossAttention(10, 6)
FACTS = {
    "layout": "BND",
    "n_heads": 4,
    "padding": "keep",
    "empty_row": "zeros",
    "projections": {
        "q": "to_queries",
        "k": "to_keys",
        "v": "to_values",
        "out": "unify_heads",
    },
}
INPUTS = {"x": "b n 10", "latents": "b m 6", "latent_mask?": "real b m"}
