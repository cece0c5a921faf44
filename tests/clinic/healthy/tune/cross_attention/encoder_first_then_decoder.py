"""From a course: the encoder's x comes first, y asks; a head's k, then v."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def scaled_dot_product(q, k, v, mask=None):
    # q: 3 x 4 x 9 x 3, k and v: 3 x 4 x 11 x 3
    d_k = q.size()[-1]
    scaled = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(d_k)
    # 3 x 4 x 9 x 11
    if mask is not None:
        scaled += mask
    attention = F.softmax(scaled, dim=-1)
    return torch.matmul(attention, v), attention


class MultiHeadCrossAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.d_model, self.num_heads = d_model, num_heads
        self.head_dim = d_model // num_heads
        self.kv_layer = nn.Linear(d_model, 2 * d_model)
        self.q_layer = nn.Linear(d_model, d_model)
        self.linear_layer = nn.Linear(d_model, d_model)

    def forward(self, x, y, mask=None):
        batch, source_len, _ = x.size()
        target_len = y.size(1)
        kv = self.kv_layer(x)  # 3 x 11 x 24
        kv = kv.reshape(batch, source_len, self.num_heads, 2 * self.head_dim)
        k, v = kv.permute(0, 2, 1, 3).chunk(2, dim=-1)
        q = self.q_layer(y)  # 3 x 9 x 12
        q = q.reshape(batch, target_len, self.num_heads, self.head_dim)
        q = q.permute(0, 2, 1, 3)
        values, _ = scaled_dot_product(q, k, v, mask)
        values = values.permute(0, 2, 1, 3)
        values = values.reshape(batch, target_len, self.d_model)
        return self.linear_layer(values)


PATIENT = MultiHeadCrossAttention(12, 4)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "add",
    "mask_axes": "NN",
    "empty_row": "nan",
    "packed": "by head",
    "n_heads": 4,
}
INPUTS = {"y": "b n 12", "x": "b m 12", "mask?": "add n m"}
