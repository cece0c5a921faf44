"""A norm is a length and one number; a stack of residuals, and no forward."""

import torch
from torch import nn


class ScaleNorm(nn.Module):
    def __init__(self, scale, eps=1e-5):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))
        self.eps = eps

    def forward(self, x):
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x * (self.scale / length.clamp(min=self.eps))


class MHA(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.weights = nn.ParameterList(
            nn.Parameter(nn.init.xavier_uniform_(torch.empty(dim, dim)))
            for _ in "qkvo"
        )

    def forward(self, x):
        w_q, w_k, w_v, w_o = self.weights
        q, k, v = (
            torch.stack((x @ w).tensor_split(self.heads, dim=-1))
            for w in (w_q, w_k, w_v)
        )
        a = torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, dim=-1)
        return torch.cat(list(a @ v), dim=-1) @ w_o


class Residual(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = ScaleNorm(dim**0.5)
        self.fn = fn

    def forward(self, x):
        return self.fn(self.norm(x)) + x


class Block(nn.Sequential):
    def __init__(self, dim, heads, mult=2):
        network = nn.Sequential(
            nn.Linear(dim, mult * dim),
            nn.ReLU(),
            nn.Linear(mult * dim, dim),
        )
        super().__init__(
            Residual(dim, MHA(dim, heads)), Residual(dim, network)
        )


PATIENT = Block(10, 2)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "attention": "0.fn",
    "feed_forward": "1.fn",
    "norms": ["0.norm", "1.norm"],
    "n_heads": 2,
}
INPUTS = {"input": "b n 10"}
