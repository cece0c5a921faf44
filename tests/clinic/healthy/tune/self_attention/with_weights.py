"""A module inside computes; output and weights come back."""

import torch
from torch import nn


class ScaledDotProduct(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature
        self.dropout = nn.Dropout(0.1)

    def forward(self, q, k, v, mask=None):
        attn = torch.matmul(q / self.temperature, k.transpose(2, 3))
        if mask is not None:
            attn = attn.masked_fill(mask == 0, float("-inf"))
        attn = self.dropout(torch.softmax(attn, dim=-1))
        return torch.matmul(attn, v), attn


class MultiHeadAttention(nn.Module):
    def __init__(self, n_head, d_model, d_k, d_v):
        super().__init__()
        self.n_head, self.d_k, self.d_v = n_head, d_k, d_v
        self.w_qs = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_ks = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_vs = nn.Linear(d_model, n_head * d_v, bias=False)
        self.fc = nn.Linear(n_head * d_v, d_model, bias=False)
        self.attention = ScaledDotProduct(d_k**0.5)

    def forward(self, x, mask=None):
        b, n = x.size(0), x.size(1)
        q = self.w_qs(x).view(b, n, self.n_head, self.d_k).transpose(1, 2)
        k = self.w_ks(x).view(b, n, self.n_head, self.d_k).transpose(1, 2)
        v = self.w_vs(x).view(b, n, self.n_head, self.d_v).transpose(1, 2)
        if mask is not None:
            mask = mask.unsqueeze(1)
        out, attn = self.attention(q, k, v, mask=mask)
        out = out.transpose(1, 2).contiguous().view(b, n, -1)
        return self.fc(out), attn


PATIENT = MultiHeadAttention(2, 10, 5, 3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "keep",
    "mask_axes": "BNN",
    "empty_row": "nan",
    "n_heads": 2,
    "projections": {"q": "w_qs", "k": "w_ks", "v": "w_vs", "out": "fc"},
    "dropout": 0.1,
}
INPUTS = {"x": "b n 10", "mask?": "keep b n n"}
