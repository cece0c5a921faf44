"""Queries and keys are normed by head before they meet."""

import torch.nn.functional as F
from torch import nn


class QKNormAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        width = d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_model, bias=False)
        self.v_proj = nn.Linear(d_model, d_model, bias=False)
        self.o_proj = nn.Linear(d_model, d_model, bias=False)
        self.q_norm = nn.LayerNorm(width)
        self.k_norm = nn.LayerNorm(width)

    def forward(self, x, attn_mask=None):
        b, n, d = x.shape
        shape = (b, n, self.n_heads, d // self.n_heads)
        q = self.q_norm(self.q_proj(x).view(shape)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(shape)).transpose(1, 2)
        v = self.v_proj(x).view(shape).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)
        out = out.transpose(1, 2).contiguous().view(b, n, d)
        return self.o_proj(out)


PATIENT = QKNormAttention(12, 2)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "mask": "keep",
    "mask_axes": "NN",
    "empty_row": "zeros",
    "n_heads": 2,
}
INPUTS = {"x": "b n 12", "attn_mask?": "keep n n"}
