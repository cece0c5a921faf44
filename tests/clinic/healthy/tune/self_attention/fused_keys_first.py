"""One matrix in another order: keys, queries, values."""

import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.kqv_proj = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, mask=None):
        k, q, v = self.kqv_proj(x).chunk(3, dim=-1)
        q, k, v = (
            t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for t in (q, k, v)
        )
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out_proj(out.transpose(1, 2).flatten(2))


PATIENT = SelfAttention(15, 3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "keep",
    "mask_axes": "NN",
    "empty_row": "zeros",
    "order": "kqv",
    "packed": "by part",
    "projections": {"qkv": "kqv_proj", "out": "out_proj"},
    "n_heads": 3,
}
INPUTS = {"x": "b n 15", "mask?": "keep n n"}
