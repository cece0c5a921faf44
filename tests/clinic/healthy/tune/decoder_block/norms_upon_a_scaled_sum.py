"""Norms behind sums in which x counts more; a tuple for tokens and memory."""

import torch
from torch import nn


class Attention(nn.Module):
    """Scores and maps as in a paper: Q = X W_Q, a matrix for all heads."""

    def __init__(self, d, h, beta):
        super().__init__()
        self.h = h
        self.W_Q, self.W_K, self.W_V, self.W_O = (
            nn.Parameter(nn.init.xavier_normal_(torch.empty(d, d), gain))
            for gain in (1.0, 1.0, beta, beta)
        )

    def forward(self, X, Y, visible):
        Q, K, V = X @ self.W_Q, Y @ self.W_K, Y @ self.W_V
        d_k = Q.shape[-1] // self.h
        heads = []
        for i in range(self.h):
            own = slice(i * d_k, (i + 1) * d_k)
            S = Q[..., own] @ K[..., own].mT / d_k**0.5
            if visible is not None:
                S = S.masked_fill(visible.logical_not(), -torch.inf)
            heads.append(S.softmax(dim=-1) @ V[..., own])
        return torch.cat(heads, dim=-1) @ self.W_O


class ScaledSumDecoder(nn.Module):
    def __init__(self, d, h, d_ff, n_layers):
        super().__init__()
        self.alpha = (3 * n_layers) ** 0.25
        beta = (12 * n_layers) ** -0.25
        self.words = Attention(d, h, beta)
        self.other = Attention(d, h, beta)
        self.ff = nn.Sequential(
            nn.Linear(d, d_ff), nn.GELU(), nn.Linear(d_ff, d)
        )
        for layer in self.ff[::2]:
            nn.init.xavier_normal_(layer.weight, beta)
        self.norm_words = nn.LayerNorm(d)
        self.norm_other = nn.LayerNorm(d)
        self.norm_ff = nn.LayerNorm(d)

    def forward(self, x, memory, real=None):
        n = x.shape[1]
        past = torch.ones(n, n, device=x.device).tril() > 0
        real = real if real is None else real.unsqueeze(1)
        x = self.norm_words(self.alpha * x + self.words(x, x, past))
        x = self.norm_other(self.alpha * x + self.other(x, memory, real))
        x = self.norm_ff(self.alpha * x + self.ff(x))
        return x, memory


PATIENT = ScaledSumDecoder(12, 3, 18, n_layers=4)
FACTS = {
    "order": "post",
    "formula": "own",
    "causal": True,
    "layout": "BND",
    "padding": "keep",
    "self_attention": "words",
    "cross_attention": "other",
    "feed_forward": "ff",
    "norms": ["norm_words", "norm_other", "norm_ff"],
    "n_heads": 3,
    "residual_factor": 12**0.25,
}
INPUTS = {"x": "b n 12", "memory": "b m 12", "real?": "real b m"}
