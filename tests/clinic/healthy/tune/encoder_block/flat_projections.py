"""All maps of the attention lie flat in the block, too."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.o = nn.Linear(dim, dim)
        self.norm_a = nn.LayerNorm(dim)
        self.norm_b = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def attend(self, x):
        b, n, c = x.shape
        q = self.q(x).view(b, n, self.heads, -1).transpose(1, 2)
        k = self.k(x).view(b, n, self.heads, -1).transpose(1, 2)
        v = self.v(x).view(b, n, self.heads, -1).transpose(1, 2)
        a = torch.softmax(q @ k.transpose(2, 3) / q.size(-1) ** 0.5, dim=-1)
        return self.o((a @ v).transpose(1, 2).reshape(b, n, c))

    def forward(self, x):
        x = self.norm_a(x + self.attend(x))
        return self.norm_b(x + self.down(torch.relu(self.up(x))))


PATIENT = Block(12, 2, 18)
FACTS = {
    "order": "post",
    "layout": "BND",
    "flat_attention": ("q", "k", "v", "o"),
    "flat_feed_forward": ("up", "relu", "down"),
    "norms": ["norm_a", "norm_b"],
    "n_heads": 2,
}
INPUTS = {"x": "b n 12"}
