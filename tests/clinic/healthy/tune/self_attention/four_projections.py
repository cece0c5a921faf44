"""Four linear maps with biases; True in the mask allows."""

import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def split_heads(self, x):
        batch, length, _ = x.size()
        x = x.view(batch, length, self.num_heads, self.d_k)
        return x.transpose(1, 2)

    def combine_heads(self, x):
        batch, _, length, _ = x.size()
        x = x.transpose(1, 2).contiguous()
        return x.view(batch, length, self.num_heads * self.d_k)

    def forward(self, x, mask=None):
        q = self.split_heads(self.W_q(x))
        k = self.split_heads(self.W_k(x))
        v = self.split_heads(self.W_v(x))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return self.W_o(self.combine_heads(torch.matmul(weights, v)))


PATIENT = MultiHeadAttention(12, 3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "keep",
    "mask_axes": "B1NN",
    "empty_row": "nan",
    "n_heads": 3,
}
INPUTS = {"x": "b n 12", "mask?": "keep b 1 n n"}
