"""A module of no weights: a temperature, a dropout, a result of two."""

import torch
import torch.nn as nn


class ScaledDotProductAttention(nn.Module):
    """Scaled Dot-Product Attention"""

    def __init__(self, temperature, attn_dropout=0.1):
        super().__init__()
        self.temperature = temperature
        self.dropout = nn.Dropout(attn_dropout)
        self.softmax = nn.Softmax(dim=2)

    def forward(self, q, k, v, mask=None):
        attn = torch.bmm(q, k.transpose(1, 2))
        attn = attn / self.temperature
        if mask is not None:
            attn = attn.masked_fill(mask, float("-inf"))
        attn = self.softmax(attn)
        attn = self.dropout(attn)
        output = torch.bmm(attn, v)
        return output, attn


PATIENT = ScaledDotProductAttention(temperature=2.5).eval()
FACTS = {
    "layout": "BND",
    "scale": 0.4,
    "mask": "block",
    "mask_axes": "BNN",
    "empty_row": "nan",
    "dropout": 0.1,
}
INPUTS = {"q": "b n d", "k": "b m d", "v": "b m e", "mask?": "block b n m"}
