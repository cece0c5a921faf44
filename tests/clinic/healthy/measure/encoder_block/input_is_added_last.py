"""Pictures: PyTorch's attention, a network that is a Sequential itself."""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn


class MLPBlock(nn.Sequential):
    def __init__(self, width: int, inner: int, dropout: float):
        super().__init__()
        self.add_module("fc1", nn.Linear(width, inner))
        self.add_module("act", nn.GELU())
        self.add_module("drop1", nn.Dropout(dropout))
        self.add_module("fc2", nn.Linear(inner, width))
        self.add_module("drop2", nn.Dropout(dropout))
        for linear in (self.fc1, self.fc2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.trunc_normal_(linear.bias, std=1e-6)


class VisionLayer(nn.Module):
    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        norm: Callable[[int], nn.Module] | None = None,
    ):
        super().__init__()
        norm = norm or partial(nn.LayerNorm, eps=1e-6)
        self.ln_attention = norm(hidden_dim)
        self.self_attention = nn.MultiheadAttention(
            hidden_dim, num_heads, dropout=dropout, batch_first=True
        )
        self.dropout = nn.Dropout(dropout)
        self.ln_mlp = norm(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        if tokens.ndim != 3:
            got = tuple(tokens.shape)
            raise ValueError(f"(batch, tokens, hidden_dim) is due, not {got}")
        x = self.ln_attention(tokens)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x)
        x = x + tokens

        y = self.ln_mlp(x)
        y = self.mlp(y)
        return y + x


PATIENT = VisionLayer(4, 16, 20, dropout=0.1)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "causal": False,
    "attention": "self_attention",
    "feed_forward": "mlp",
    "norms": ["ln_attention", "ln_mlp"],
    "n_heads": 4,
    "dropout": 0.1,
}
INPUTS = {"tokens": "b n 16"}
