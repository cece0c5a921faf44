"""Two streams in one: each hears from the other, and can be undone."""

import torch
import torch.nn.functional as F
from torch import nn


class StreamAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.heads = heads
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.to_out = nn.Linear(width, width)

    def forward(self, x, pad):
        b, n, _ = x.shape
        qkv = self.to_qkv(self.norm(x)).view(b, n, self.heads, 3, -1)
        q, k, v = qkv.transpose(1, 2).unbind(-2)
        seen = None if pad is None else ~pad.view(b, 1, 1, n)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.to_out(y.transpose(1, 2).reshape(b, n, -1))


class StreamNetwork(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 3 * width)
        self.down = nn.Linear(3 * width, width)

    def forward(self, x):
        return self.down(F.leaky_relu(self.up(self.norm(x))))


class ReversibleBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.f = StreamAttention(dim // 2, heads)
        self.g = StreamNetwork(dim // 2)

    def forward(self, x, pad=None):
        x1, x2 = torch.tensor_split(x, 2, dim=-1)
        y1 = x1 + self.f(x2, pad)
        y2 = x2 + self.g(y1)
        return torch.cat((y1, y2), dim=-1)

    def inverse(self, y, pad=None):
        y1, y2 = torch.tensor_split(y, 2, dim=-1)
        x2 = y2 - self.g(y1)
        x1 = y1 - self.f(x2, pad)
        return torch.cat((x1, x2), dim=-1)


PATIENT = ReversibleBlock(16, 2)
FACTS = {
    "formula": "own",
    "layout": "BND",
    "causal": False,
    "padding": "block",
    "attention": "f",
    "feed_forward": "g",
    "norms": ["f.norm", "g.norm"],
}
INPUTS = {"x": "b n 16", "pad?": "padding b n"}
