"""An early port of the paper: sublayers end in norms, weights come back."""

import numpy as np
import torch
import torch.nn as nn


def scaled_dot_product(q, k, v, d_k, dropout, mask=None):
    attn = torch.bmm(q, k.transpose(1, 2)) / np.sqrt(d_k)
    if mask is not None:
        attn = attn.masked_fill(mask.logical_not(), -1e9)
    attn = torch.softmax(attn, dim=2)
    return torch.bmm(dropout(attn), v), attn


class AttentionSublayer(nn.Module):
    """Many heads, dropout, residual, norm"""

    def __init__(self, n_head, d_model, d_k, d_v, dropout):
        super().__init__()
        self.n_head, self.d_k = n_head, d_k
        self.w_q = nn.Linear(d_model, n_head * d_k)
        self.w_k = nn.Linear(d_model, n_head * d_k)
        self.w_v = nn.Linear(d_model, n_head * d_v)
        self.proj = nn.Linear(n_head * d_v, d_model)
        self.attn_dropout = nn.Dropout(dropout)
        self.dropout = nn.Dropout(dropout)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)

    def split(self, x):
        """All texts of head 1, then all of head 2, and so on"""
        return torch.cat(x.chunk(self.n_head, dim=2), dim=0)

    def forward(self, query, memory, mask=None):
        residual = query
        q = self.split(self.w_q(query))
        k = self.split(self.w_k(memory))
        v = self.split(self.w_v(memory))
        if mask is not None:
            mask = mask.repeat(self.n_head, 1, 1)

        heads, attn = scaled_dot_product(
            q, k, v, self.d_k, self.attn_dropout, mask
        )
        out = torch.cat(heads.chunk(self.n_head, dim=0), dim=2)
        out = self.dropout(self.proj(out))
        out = residual + out
        return self.layer_norm(out), attn


class NetworkSublayer(nn.Module):
    def __init__(self, d_model, d_inner, dropout):
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_inner)
        self.w_2 = nn.Linear(d_inner, d_model)
        self.dropout = nn.Dropout(dropout)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)

    def forward(self, x):
        out = torch.relu(self.w_1(x))
        out = self.dropout(self.w_2(out))
        out = x + out
        return self.layer_norm(out)


class PortedDecoderLayer(nn.Module):
    def __init__(self, d_model, d_inner, n_head, d_k, d_v, dropout=0.1):
        super().__init__()
        sizes = n_head, d_model, d_k, d_v, dropout
        self.slf_attn = AttentionSublayer(*sizes)
        self.enc_attn = AttentionSublayer(*sizes)
        self.pos_ffn = NetworkSublayer(d_model, d_inner, dropout)

    def forward(self, dec_input, enc_output, slf_mask, enc_mask=None):
        dec_output, slf_attn = self.slf_attn(
            dec_input, dec_input, mask=slf_mask
        )
        dec_output, enc_attn = self.enc_attn(
            dec_output, enc_output, mask=enc_mask
        )
        dec_output = self.pos_ffn(dec_output)
        return dec_output, slf_attn, enc_attn


PATIENT = PortedDecoderLayer(12, 16, n_head=2, d_k=5, d_v=4)
FACTS = {
    "order": "post",
    "layout": "BND",
    "mask": "keep",
    "own_mask": "slf_mask",
    "self_attention": "slf_attn",
    "cross_attention": "enc_attn",
    "feed_forward": "pos_ffn",
    "norms": [
        "slf_attn.layer_norm",
        "enc_attn.layer_norm",
        "pos_ffn.layer_norm",
    ],
    "n_heads": 2,
    "dropout": 0.1,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "dec_input": "b n 12",
    "enc_output": "b m 12",
    "slf_mask": "keep b n n",
    "enc_mask?": "keep b 1 m",
}
