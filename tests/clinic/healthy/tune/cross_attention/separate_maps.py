"""A context of another width, and a mask over it."""

import math

from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_model, d_context, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.head_dim = d_model // n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_context, d_model)
        self.value = nn.Linear(d_context, d_model)
        self.out = nn.Linear(d_model, d_model)

    def heads(self, x):
        b, n, _ = x.shape
        return x.view(b, n, self.n_heads, self.head_dim).transpose(1, 2)

    def forward(self, x, context, mask=None):
        q = self.heads(self.query(x))
        k = self.heads(self.key(context))
        v = self.heads(self.value(context))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        out = scores.softmax(dim=-1) @ v
        return self.out(out.transpose(1, 2).reshape(x.shape))


PATIENT = CrossAttention(12, 7, 3)
FACTS = {
    "layout": "BND",
    "mask": "keep",
    "mask_axes": "B1NN",
    "empty_row": "nan",
    "n_heads": 3,
}
INPUTS = {"x": "b n 12", "context": "b m 7", "mask?": "keep b 1 n m"}
