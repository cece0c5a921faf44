"""Text to text: no scale, and a number for each head and bucket of distance.

The first layer makes the numbers; here every layer makes its own.
"""

import math

import torch
from torch import Tensor, nn


class Norm(nn.Module):
    """Only scales, no shift."""

    def __init__(self, d: int, eps: float = 1e-6):
        super().__init__()
        self.g = nn.Parameter(torch.ones(d))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, True) + self.eps) * self.g


class RelativeBias(nn.Module):
    def __init__(self, n_heads: int, buckets: int = 8, far: int = 6):
        super().__init__()
        self.buckets, self.far = buckets, far
        self.table = nn.Embedding(buckets, n_heads)

    def bucket(self, n: int, device: torch.device) -> Tensor:
        """Near ones singly, far ones by logarithm; one half looks ahead."""
        position = torch.arange(n, device=device)
        relative = position[None, :] - position[:, None]
        half = self.buckets // 2
        ahead = (relative > 0).long() * half
        distance = relative.abs()
        exact = half // 2
        grow = torch.log(distance.clamp(min=1).float() / exact)
        grow = grow / math.log(self.far / exact) * (half - exact)
        large = (exact + grow.long()).clamp(max=half - 1)
        return ahead + torch.where(distance < exact, distance, large)

    def forward(self, n: int, device: torch.device) -> Tensor:
        return self.table(self.bucket(n, device)).permute(2, 0, 1)


class RelativeAttention(nn.Module):
    def __init__(self, d_model: int, d_kv: int, n_heads: int):
        super().__init__()
        self.n_heads = n_heads
        self.bias = RelativeBias(n_heads)
        self.q = nn.Linear(d_model, n_heads * d_kv, bias=False)
        self.k = nn.Linear(d_model, n_heads * d_kv, bias=False)
        self.v = nn.Linear(d_model, n_heads * d_kv, bias=False)
        self.o = nn.Linear(n_heads * d_kv, d_model, bias=False)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        b, n, _ = x.shape
        q, k, v = (
            f(x).view(b, n, self.n_heads, -1).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        logits = q @ k.mT + self.bias(n, x.device)
        if keep is not None:
            lowest = torch.finfo(logits.dtype).min
            logits = logits.masked_fill(~keep[:, None, None, :], lowest)
        out = logits.softmax(-1) @ v
        return self.o(out.transpose(1, 2).reshape(b, n, -1))


class TextEncoderLayer(nn.Module):
    def __init__(self, d_model, d_kv, d_ff, n_heads, dropout_rate=0.1):
        super().__init__()
        self.attn_norm = Norm(d_model)
        self.attn = RelativeAttention(d_model, d_kv, n_heads)
        self.ff_norm = Norm(d_model)
        self.wi = nn.Linear(d_model, d_ff, bias=False)
        self.wo = nn.Linear(d_ff, d_model, bias=False)
        self.drop = nn.Dropout(dropout_rate)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None):
        x = x + self.drop(self.attn(self.attn_norm(x), attention_mask))
        y = self.wi(self.ff_norm(x))
        y = self.wo(self.drop(torch.relu(y)))
        return x + self.drop(y)


PATIENT = TextEncoderLayer(10, 4, 15, 3)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "padding": "keep",
    "scale": 1.0,
    "positions": "relative",
    "attention": "attn",
    "flat_feed_forward": ("wi", "relu", "wo"),
    "norms": ["attn_norm", "ff_norm"],
    "n_heads": 3,
    "dropout": 0.1,
}
INPUTS = {"x": "b n 10", "attention_mask?": "real b n"}
