"""What both halves of a head agree upon is taken off as noise."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def lambda_init(depth):
    return 0.8 - 0.6 * math.exp(-0.3 * depth)


class DiffAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, depth):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads // 2
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.k_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.v_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.lambda_init = lambda_init(depth)
        for name in ("q1", "k1", "q2", "k2"):
            start = nn.Parameter(0.1 * torch.randn(self.head_dim))
            self.register_parameter(f"lambda_{name}", start)
        self.subln = nn.RMSNorm(2 * self.head_dim, eps=1e-5)

    def lambda_full(self):
        first = torch.dot(self.lambda_q1, self.lambda_k1).exp()
        second = torch.dot(self.lambda_q2, self.lambda_k2).exp()
        return first - second + self.lambda_init

    def forward(self, x):
        b, n, _ = x.size()
        two = (b, n, 2 * self.num_heads, self.head_dim)
        q = self.q_proj(x).view(two).transpose(1, 2) * self.head_dim**-0.5
        k = self.k_proj(x).view(two).transpose(1, 2)
        v = self.v_proj(x).view(b, n, self.num_heads, -1).transpose(1, 2)

        future = x.new_full((n, n), float("-inf")).triu_(1)
        w = F.softmax(q @ k.transpose(-1, -2) + future, dim=-1)
        w = w.view(b, self.num_heads, 2, n, n)
        w = w[:, :, 0] - self.lambda_full() * w[:, :, 1]

        y = self.subln(w @ v) * (1 - self.lambda_init)
        return self.out_proj(y.transpose(1, 2).reshape(b, n, -1))


PATIENT = DiffAttention(16, 2, depth=1)
FACTS = {
    "layout": "BND",
    "causal": True,
    "formula": "own",
    "n_heads": 2,
}
INPUTS = {"x": "b n 16"}
