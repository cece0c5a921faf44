"""A Flax user's: a child of PyTorch's layer with one map for q and k."""

import torch
import torch.nn.functional as F
from torch import nn


class SharedQK(nn.MultiheadAttention):
    """Keeps the parent's heads and output, and a smaller input matrix."""

    def __init__(self, features, num_heads):
        super().__init__(features, num_heads, batch_first=True)
        # rows: first what serves as queries and as keys, then the values
        self.in_proj_weight = nn.Parameter(torch.empty(2 * features, features))
        self.in_proj_bias = nn.Parameter(torch.zeros(2 * features))
        nn.init.xavier_uniform_(self.in_proj_weight)

    def forward(self, inputs, *, is_causal=False):
        both = F.linear(inputs, self.in_proj_weight, self.in_proj_bias)
        both = both.unflatten(-1, (2, self.num_heads, self.head_dim))
        qk, v = both.movedim(-3, 0).transpose(-3, -2)
        mixed = F.scaled_dot_product_attention(qk, qk, v, is_causal=is_causal)
        return self.out_proj(mixed.transpose(-3, -2).flatten(-2)), None


PATIENT = SharedQK(features=12, num_heads=2)
FACTS = {
    "layout": "BND",
    "causal": False,
    "d_model": 12,
    "n_heads": 2,
    "names": {"x": "inputs", "causal": "is_causal"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"inputs": "b n 12", "is_causal?": "true"}
