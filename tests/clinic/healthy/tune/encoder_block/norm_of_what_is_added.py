"""Norms stand on the branch, behind its sublayer: x + norm(f(x))."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    d_model: int = 16
    n_heads: int = 4
    mlp_hidden: int = 10
    rope_theta: float = 500_000.0
    layer_norm_eps: float = 1e-6


class OwnRMSNorm(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.eps = config.layer_norm_eps
        self.weight = nn.Parameter(torch.ones(config.d_model))

    def forward(self, x):
        mean_square = torch.mean(x * x, -1, keepdim=True)
        return self.weight * x * torch.rsqrt(mean_square + self.eps)


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        width = config.d_model
        self.config = config
        self.w_q = nn.Linear(width, width, bias=False)
        self.w_k = nn.Linear(width, width, bias=False)
        self.w_v = nn.Linear(width, width, bias=False)
        self.w_out = nn.Linear(width, width, bias=False)
        self.q_norm = OwnRMSNorm(config)
        self.k_norm = OwnRMSNorm(config)

    def turn(self, t):
        half = t.shape[-1] // 2
        steps = torch.arange(half, dtype=t.dtype, device=t.device) / half
        speeds = self.config.rope_theta**-steps
        places = torch.arange(t.shape[-2], dtype=t.dtype, device=t.device)
        angles = torch.outer(places, speeds)
        left, right = t.split(half, dim=-1)
        return torch.cat(
            [
                left * angles.cos() - right * angles.sin(),
                right * angles.cos() + left * angles.sin(),
            ],
            dim=-1,
        )

    def forward(self, x):
        def heads(t):
            return t.unflatten(-1, (self.config.n_heads, -1)).transpose(1, 2)

        # the norms of q and k go over all heads at once
        q = self.turn(heads(self.q_norm(self.w_q(x))))
        k = self.turn(heads(self.k_norm(self.w_k(x))))
        v = heads(self.w_v(x))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.w_out(out.transpose(1, 2).flatten(2))


class SwiGLU(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.w1 = nn.Linear(config.d_model, config.mlp_hidden, bias=False)
        self.w2 = nn.Linear(config.mlp_hidden, config.d_model, bias=False)
        self.w3 = nn.Linear(config.d_model, config.mlp_hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class ReorderedNormBlock(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.attention = Attention(config)
        self.attention_norm = OwnRMSNorm(config)
        self.feed_forward = SwiGLU(config)
        self.feed_forward_norm = OwnRMSNorm(config)

    def forward(self, x):
        h = x + self.attention_norm(self.attention(x))
        return h + self.feed_forward_norm(self.feed_forward(h))


PATIENT = ReorderedNormBlock(Config())
FACTS = {
    "formula": "own",
    "layout": "BND",
    "causal": True,
    "attention": "attention",
    "feed_forward": "feed_forward",
    "norms": ["attention_norm", "feed_forward_norm"],
}
INPUTS = {"x": "b n 16"}
