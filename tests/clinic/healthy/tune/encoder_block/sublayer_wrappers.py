"""A wrapper that norms, drops and adds what a sublayer says."""

import torch
from torch import nn


class SublayerConnection(nn.Module):
    def __init__(self, size, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, sublayer):
        return x + self.dropout(sublayer(self.norm(x)))


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)

    def forward(self, x, mask):
        scores = self.query(x) @ self.key(x).mT / x.size(-1) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return torch.softmax(scores, dim=-1) @ self.value(x)


class EncoderLayer(nn.Module):
    def __init__(self, size, hidden, dropout=0.1):
        super().__init__()
        self.self_attn = Attention(size)
        self.feed_forward = nn.Sequential(
            nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, size)
        )
        self.first = SublayerConnection(size, dropout)
        self.second = SublayerConnection(size, dropout)

    def forward(self, x, mask=None):
        x = self.first(x, lambda y: self.self_attn(y, mask))
        return self.second(x, self.feed_forward)


PATIENT = EncoderLayer(10, 16)
FACTS = {
    "order": "pre",
    "mask": "keep",
    "layout": "BND",
    "norms": ["first.norm", "second.norm"],
    "dropout": 0.1,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"x": "b n 10", "mask?": "keep n n"}
