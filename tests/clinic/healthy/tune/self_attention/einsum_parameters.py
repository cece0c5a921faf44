"""Projections as bare parameters with an axis for the heads."""

import torch
from torch import nn


class EinsumAttention(nn.Module):
    def __init__(self, d_model, n_heads, d_head):
        super().__init__()
        shape = n_heads, d_model, d_head
        self.W_Q = nn.Parameter(torch.randn(shape) / d_model**0.5)
        self.W_K = nn.Parameter(torch.randn(shape) / d_model**0.5)
        self.W_V = nn.Parameter(torch.randn(shape) / d_model**0.5)
        self.W_O = nn.Parameter(torch.randn(n_heads, d_head, d_model) / 3)
        self.b_Q = nn.Parameter(torch.zeros(n_heads, d_head))
        self.d_head = d_head

    def forward(self, x):
        q = torch.einsum("bpm,imh->bpih", x, self.W_Q) + self.b_Q
        k = torch.einsum("bpm,imh->bpih", x, self.W_K)
        v = torch.einsum("bpm,imh->bpih", x, self.W_V)
        scores = torch.einsum("bqih,bkih->biqk", q, k)
        scores = scores / self.d_head**0.5
        future = torch.ones(scores.shape[-2:], device=x.device).triu(1)
        scores = scores.masked_fill(future.bool(), -1e5)
        pattern = scores.softmax(dim=-1)
        z = torch.einsum("biqk,bkih->bqih", pattern, v)
        return torch.einsum("bqih,ihm->bqm", z, self.W_O)


PATIENT = EinsumAttention(10, 2, 5)
FACTS = {
    "layout": "BND",
    "causal": True,
    "n_heads": 2,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"x": "b n 10"}
