"""A tutorial's translator: masks are 0 where one may not look."""

import torch
import torch.nn as nn


class MultiHeadAttention(nn.Module):
    def __init__(self, hid_dim, n_heads, dropout):
        super().__init__()
        self.n_heads = n_heads
        self.head_dim = hid_dim // n_heads

        self.fc_q = nn.Linear(hid_dim, hid_dim)
        self.fc_k = nn.Linear(hid_dim, hid_dim)
        self.fc_v = nn.Linear(hid_dim, hid_dim)
        self.fc_o = nn.Linear(hid_dim, hid_dim)

        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        N, trg_len, hid_dim = query.shape
        src_len = key.shape[1]

        Q = self.fc_q(query).view(N, trg_len, self.n_heads, self.head_dim)
        K = self.fc_k(key).view(N, src_len, self.n_heads, self.head_dim)
        V = self.fc_v(value).view(N, src_len, self.n_heads, self.head_dim)

        # energy: (N, heads, trg_len, src_len)
        energy = torch.einsum("nqhd,nkhd->nhqk", [Q, K])
        energy = energy / (self.head_dim**0.5)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))

        attention = torch.softmax(energy, dim=3)
        out = torch.einsum("nhqk,nkhd->nqhd", [self.dropout(attention), V])
        out = self.fc_o(out.reshape(N, trg_len, hid_dim))
        return out, attention


class PositionwiseFeedForward(nn.Module):
    def __init__(self, hid_dim, pf_dim, dropout):
        super().__init__()
        self.fc_1 = nn.Linear(hid_dim, pf_dim)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(dropout)
        self.fc_2 = nn.Linear(pf_dim, hid_dim)

    def forward(self, x):
        out = self.dropout(self.relu(self.fc_1(x)))
        out = self.fc_2(out)
        return out


class DecoderLayer(nn.Module):
    def __init__(self, hid_dim, n_heads, pf_dim, dropout):
        super().__init__()
        self.self_attention = MultiHeadAttention(hid_dim, n_heads, dropout)
        self.norm1 = nn.LayerNorm(hid_dim)
        self.encoder_attention = MultiHeadAttention(hid_dim, n_heads, dropout)
        self.norm2 = nn.LayerNorm(hid_dim)
        self.feed_forward = PositionwiseFeedForward(hid_dim, pf_dim, dropout)
        self.norm3 = nn.LayerNorm(hid_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, trg, enc_src, trg_mask, src_mask):
        # trg: (N, trg_len, hid_dim), enc_src: (N, src_len, hid_dim)

        # 1. the words so far
        out, _ = self.self_attention(trg, trg, trg, trg_mask)
        trg = self.norm1(trg + self.dropout(out))

        # 2. the sentence to translate
        out, attention = self.encoder_attention(
            trg, enc_src, enc_src, src_mask
        )
        trg = self.norm2(trg + self.dropout(out))

        # 3. each word by itself
        out = self.feed_forward(trg)
        trg = self.norm3(trg + self.dropout(out))

        return trg, attention


PATIENT = DecoderLayer(12, 3, 20, 0.1)
FACTS = {
    "order": "post",
    "layout": "BND",
    "mask": "keep",
    "own_mask": "trg_mask",
    "self_attention": "self_attention",
    "cross_attention": "encoder_attention",
    "feed_forward": "feed_forward",
    "norms": ["norm1", "norm2", "norm3"],
    "n_heads": 3,
    "dropout": 0.1,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "trg": "b n 12",
    "enc_src": "b m 12",
    "trg_mask": "keep b 1 n n",
    "src_mask": "keep b 1 1 m",
}
