"""For a course: lengths instead of a mask, and weights kept to be drawn."""

import math

import torch
from torch import nn


def visible(valid_lens, n_keys):
    """Lengths are one for each text, or one for each of its queries."""
    if valid_lens.dim() == 1:
        valid_lens = valid_lens[:, None]
    steps = torch.arange(n_keys, device=valid_lens.device)
    return steps < valid_lens[:, :, None]


class DotProductAttention(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.attention_weights = None

    def forward(self, queries, keys, values, valid_lens=None):
        d = queries.shape[-1]
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(d)
        if valid_lens is not None:
            mask = visible(valid_lens, keys.shape[1])
            scores = torch.where(mask, scores, -1e6)
        self.attention_weights = nn.functional.softmax(scores, dim=-1)
        return torch.bmm(self.dropout(self.attention_weights), values)


PATIENT = DotProductAttention(dropout=0.5).eval()
FACTS = {
    "layout": "BND",
    "mask": "lengths",
    "names": {"mask": "valid_lens"},
    "dropout": 0.5,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "queries": "b n d",
    "keys": "b m d",
    "values": "b m e",
    "valid_lens?": "lengths b m",
}
