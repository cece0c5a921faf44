"""Fairseq's: tokens first, heads folded into the batch, padding by key."""

import torch
import torch.nn.functional as F
from torch import nn


class MultiheadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.scaling = self.head_dim**-0.5
        self.dropout = dropout
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def fold(self, x):
        n, b, _ = x.shape
        x = x.contiguous().view(n, b * self.num_heads, self.head_dim)
        return x.transpose(0, 1)

    def forward(self, x, key_padding_mask=None):
        n, b, c = x.shape
        q = self.fold(self.q_proj(x) * self.scaling)
        k, v = self.fold(self.k_proj(x)), self.fold(self.v_proj(x))
        weights = torch.bmm(q, k.transpose(1, 2))
        if key_padding_mask is not None:
            weights = weights.view(b, self.num_heads, n, n)
            hidden = key_padding_mask.unsqueeze(1).unsqueeze(2)
            weights = weights.masked_fill(hidden, float("-inf"))
            weights = weights.view(b * self.num_heads, n, n)
        weights = F.softmax(weights, dim=-1)
        weights = F.dropout(weights, self.dropout, training=self.training)
        out = torch.bmm(weights, v)
        out = out.transpose(0, 1).contiguous().view(n, b, c)
        return self.out_proj(out)


PATIENT = MultiheadAttention(12, 3, dropout=0.2)
FACTS = {
    "layout": "NBD",
    "causal": False,
    "padding": "block",
    "empty_row": "nan",
    "n_heads": 3,
    "dropout": 0.2,
}
INPUTS = {"x": "n b 12", "key_padding_mask?": "padding b n"}
