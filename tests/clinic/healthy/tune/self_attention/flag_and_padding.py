"""A causal flag and a padding mask, joined before the softmax."""

import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.1):
        super().__init__()
        self.n_heads = n_heads
        self.to_q = nn.Linear(d_model, d_model, bias=False)
        self.to_k = nn.Linear(d_model, d_model, bias=False)
        self.to_v = nn.Linear(d_model, d_model, bias=False)
        self.to_out = nn.Sequential(
            nn.Linear(d_model, d_model), nn.Dropout(dropout)
        )

    def forward(self, x, padding_mask=None, causal=False):
        b, n, d = x.shape
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        q = q.view(b, n, self.n_heads, -1).transpose(1, 2)
        k = k.view(b, n, self.n_heads, -1).transpose(1, 2)
        v = v.view(b, n, self.n_heads, -1).transpose(1, 2)
        dots = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
        if padding_mask is not None:
            dots = dots.masked_fill(
                ~padding_mask[:, None, None, :], -torch.inf
            )
        if causal:
            i = torch.arange(n, device=x.device)
            dots = dots.masked_fill(i[None, :] > i[:, None], -torch.inf)
        attn = dots.softmax(dim=-1)
        out = torch.einsum("bhij,bhjd->bhid", attn, v)
        return self.to_out(out.transpose(1, 2).reshape(b, n, d))


PATIENT = SelfAttention(12, 3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "padding": "keep",
    "empty_row": "nan",
    "n_heads": 3,
    "projections": {"out": "to_out.0"},
    "dropout": 0.1,
}
INPUTS = {"x": "b n 12", "padding_mask?": "real b n", "causal?": "true"}
