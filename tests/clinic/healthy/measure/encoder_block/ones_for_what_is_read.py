"""A student of a large model: a mask of ones; weights if it is asked."""

from math import sqrt

import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, dim, n_heads, dropout):
        super().__init__()
        self.n_heads = n_heads
        for name in ("q", "k", "v", "out"):
            self.add_module(f"{name}_lin", nn.Linear(dim, dim))
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x, mask=None):
        bs, length, dim = x.shape

        def shape(t):
            """Heads before tokens."""
            return t.reshape(bs, length, self.n_heads, -1).permute(0, 2, 1, 3)

        q, k, v = shape(self.q_lin(x)), self.k_lin(x), self.v_lin(x)
        scores = torch.matmul(q, shape(k).transpose(-1, -2))
        scores = scores / sqrt(dim // self.n_heads)
        if mask is not None:
            unread = mask.eq(0)[:, None, None].expand(scores.shape)
            least = torch.finfo(scores.dtype).min
            scores = scores.masked_fill(unread, least)
        weights = torch.softmax(scores, dim=-1)
        context = torch.matmul(self.dropout(weights), shape(v))
        context = context.permute(0, 2, 1, 3).reshape(bs, length, dim)
        return self.out_lin(context), weights


class FFN(nn.Module):
    def __init__(self, dim, hidden_dim, dropout):
        super().__init__()
        self.lin1 = nn.Linear(dim, hidden_dim)
        self.lin2 = nn.Linear(hidden_dim, dim)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x):
        h = nn.functional.gelu(self.lin1(x))
        return self.dropout(self.lin2(h))


class StudentBlock(nn.Module):
    def __init__(
        self, dim, n_heads, hidden_dim, dropout=0.1, return_weights=False
    ):
        super().__init__()
        self.return_weights = return_weights
        self.attention = SelfAttention(dim, n_heads, dropout)
        self.sa_norm = nn.LayerNorm(dim, eps=1e-12)
        self.ffn = FFN(dim, hidden_dim, dropout)
        self.out_norm = nn.LayerNorm(dim, eps=1e-12)

    def forward(self, x, attn_mask=None):
        attn_output, weights = self.attention(x, mask=attn_mask)
        x = self.sa_norm(x + attn_output)
        ffn_output = self.ffn(x)
        x = self.out_norm(x + ffn_output)
        return (x, weights) if self.return_weights else (x,)


PATIENT = StudentBlock(12, 2, 18, return_weights=True)
FACTS = {
    "order": "post",
    "layout": "BND",
    "padding": "keep",
    "attention": "attention",
    "feed_forward": "ffn",
    "norms": ["sa_norm", "out_norm"],
    "n_heads": 2,
    "dropout": 0.1,
}
INPUTS = {"x": "b n 12", "attn_mask?": "real b n"}
