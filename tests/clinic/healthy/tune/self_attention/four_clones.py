"""The Annotated Transformer's: four maps in a list, called with q, k, v."""

import math

import torch
from torch import nn


def attention(query, key, value, mask=None):
    scores = torch.matmul(query, key.transpose(-2, -1))
    scores = scores / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return torch.matmul(scores.softmax(dim=-1), value)


class MultiHeadedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.d_k = d_model // h
        self.h = h
        self.linears = nn.ModuleList(
            [nn.Linear(d_model, d_model) for _ in range(4)]
        )

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        size = query.size(0)
        query, key, value = [
            linear(x).view(size, -1, self.h, self.d_k).transpose(1, 2)
            for linear, x in zip(
                self.linears, (query, key, value), strict=False
            )
        ]
        x = attention(query, key, value, mask=mask)
        x = x.transpose(1, 2).contiguous().view(size, -1, self.h * self.d_k)
        return self.linears[-1](x)


PATIENT = MultiHeadedAttention(3, 12)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "keep",
    "mask_axes": "BNN",
    "empty_row": "average",
    "n_heads": 3,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "query": "b n 12",
    "key": "=query",
    "value": "=query",
    "mask?": "keep b n n",
}
