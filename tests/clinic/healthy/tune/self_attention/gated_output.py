"""Heads are normed together and gated by the input on the way out."""

import torch
from torch import nn


class GatedAttention(nn.Module):
    """softmax(QK'/sqrt(d))V, times a sigmoid of x, one gate per feature."""

    def __init__(self, d_model: int, n_heads: int, d_head: int):
        super().__init__()
        inner = n_heads * d_head
        self.n_heads = n_heads
        self.in_proj = nn.Linear(d_model, 4 * inner, bias=False)
        self.out_norm = nn.RMSNorm(d_head, eps=1e-5)
        self.out_proj = nn.Linear(inner, d_model, bias=False)

    def forward(self, u: torch.Tensor, is_causal: bool = False):
        batch, seqlen, _ = u.shape
        z, q, k, v = self.in_proj(u).tensor_split(4, dim=-1)
        q, k, v = [
            t.reshape(batch, seqlen, self.n_heads, -1).movedim(2, 1)
            for t in (q, k, v)
        ]
        y = nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=is_causal
        )
        y = self.out_norm(y).movedim(1, 2).reshape(z.shape)
        return self.out_proj(y * torch.sigmoid(z))


PATIENT = GatedAttention(10, n_heads=2, d_head=4)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "n_heads": 2,
}
INPUTS = {"u": "b n 10", "is_causal?": "true"}
