"""A head is a module; queries from one side, the rest from the other."""

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, d_x, d_y, d_head):
        super().__init__()
        self.q = nn.Linear(d_x, d_head)
        self.k = nn.Linear(d_y, d_head)
        self.v = nn.Linear(d_y, d_head)

    def forward(self, x, y):
        q, k, v = self.q(x), self.k(y), self.v(y)
        scores = torch.bmm(q, k.transpose(1, 2)) / q.size(-1) ** 0.5
        return torch.bmm(torch.softmax(scores, dim=-1), v)


class CrossAttention(nn.Module):
    def __init__(self, d_x, d_y, n_heads, d_head):
        super().__init__()
        self.heads = nn.ModuleList(
            Head(d_x, d_y, d_head) for _ in range(n_heads)
        )
        self.linear = nn.Linear(n_heads * d_head, d_x)

    def forward(self, x, y):
        return self.linear(torch.cat([h(x, y) for h in self.heads], dim=-1))


PATIENT = CrossAttention(8, 6, 3, 5)
FACTS = {"layout": "BND", "n_heads": 3}
INPUTS = {"x": "b n 8", "y": "b m 6"}
