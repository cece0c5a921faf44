"""Forecasting: the network is two convolutions of width one; weights too."""

from math import sqrt

import torch
import torch.nn as nn
import torch.nn.functional as F


class FullAttention(nn.Module):
    def __init__(self, scale=None, attention_dropout=0.1):
        super().__init__()
        self.scale = scale
        self.dropout = nn.Dropout(attention_dropout)

    def forward(self, queries, keys, values, forbidden):
        E = queries.shape[-1]
        scale = self.scale or 1.0 / sqrt(E)
        scores = torch.einsum("blhe,bshe->bhls", queries, keys)
        if forbidden is not None:
            scores = scores.masked_fill(forbidden, float("-inf"))
        A = self.dropout(torch.softmax(scale * scores, dim=-1))
        return torch.einsum("bhls,bshd->blhd", A, values), A


class AttentionLayer(nn.Module):
    def __init__(self, attention, d_model, n_heads):
        super().__init__()
        d_head = d_model // n_heads
        self.inner_attention = attention
        self.query_projection = nn.Linear(d_model, d_head * n_heads)
        self.key_projection = nn.Linear(d_model, d_head * n_heads)
        self.value_projection = nn.Linear(d_model, d_head * n_heads)
        self.out_projection = nn.Linear(d_head * n_heads, d_model)
        self.n_heads = n_heads

    def forward(self, queries, keys, values, attn_mask):
        B, L, _ = queries.shape
        S, H = keys.shape[1], self.n_heads
        out, attn = self.inner_attention(
            self.query_projection(queries).view(B, L, H, -1),
            self.key_projection(keys).view(B, S, H, -1),
            self.value_projection(values).view(B, S, H, -1),
            attn_mask,
        )
        return self.out_projection(out.reshape(B, L, -1)), attn


class SeriesEncoderLayer(nn.Module):
    def __init__(self, attention, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.attention = attention
        self.conv1 = nn.Conv1d(d_model, d_ff, kernel_size=1)
        self.conv2 = nn.Conv1d(d_ff, d_model, kernel_size=1)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, attn_mask=None):
        new_x, attn = self.attention(x, x, x, attn_mask)
        x = x + self.dropout(new_x)
        y = x = self.norm1(x)
        y = self.dropout(F.gelu(self.conv1(y.transpose(-1, 1))))
        y = self.dropout(self.conv2(y).transpose(-1, 1))
        return self.norm2(x + y), attn


PATIENT = SeriesEncoderLayer(AttentionLayer(FullAttention(), 12, 3), 12, 17)
FACTS = {
    "order": "post",
    "layout": "BND",
    "mask": "block",
    "attention": "attention",
    "flat_feed_forward": ("conv1", "gelu", "conv2"),
    "norms": ["norm1", "norm2"],
    "dropout": 0.1,
}
INPUTS = {"x": "b n 12", "attn_mask?": "block n n"}
