"""An old translation library: PyTorch's function, parameters of its own."""

import torch
import torch.nn.functional as F
from torch import nn


class PackedSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.weight = nn.Parameter(torch.empty(3 * embed_dim, embed_dim))
        self.bias = nn.Parameter(torch.zeros(3 * embed_dim))
        self.out = nn.Linear(embed_dim, embed_dim)
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, pad=None, attn_mask=None, need_weights=False):
        """x is (time, batch, channel); True in a mask is not looked at."""
        y, weights = F.multi_head_attention_forward(
            query=x,
            key=x,
            value=x,
            embed_dim_to_check=self.embed_dim,
            num_heads=self.num_heads,
            in_proj_weight=self.weight,
            in_proj_bias=self.bias,
            bias_k=None,
            bias_v=None,
            add_zero_attn=False,
            dropout_p=self.dropout,
            out_proj_weight=self.out.weight,
            out_proj_bias=self.out.bias,
            training=self.training,
            key_padding_mask=pad,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=False,
        )
        return (y, weights) if need_weights else y


PATIENT = PackedSelfAttention(12, 2, dropout=0.2).eval()
FACTS = {
    "layout": "NBD",
    "causal": False,
    "mask": "block",
    "mask_axes": "NN",
    "padding": "block",
    "names": {"mask": "attn_mask", "padding": "pad"},
    "packed": "by part",
    "projections": {"qkv": "weight", "out": "out"},
    "d_model": 12,
    "n_heads": 2,
    "dropout": 0.2,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"x": "n b 12", "pad?": "padding b n", "need_weights?": "true"}
OTHER_INPUTS = ({"x": "n b 12", "attn_mask": "block n n"},)
