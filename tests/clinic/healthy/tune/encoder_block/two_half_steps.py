"""Of speech recognition: attention between two halves of feed forward."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """x + factor * what a module makes of the normed x."""

    def __init__(self, dim: int, module: nn.Module, factor: float = 1.0):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.module = module
        self.factor = factor

    def forward(self, x: Tensor, **options) -> Tensor:
        return torch.add(
            x, self.module(self.norm(x), **options), alpha=self.factor
        )


class SelfAttention(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.mha = nn.MultiheadAttention(dim, heads, batch_first=True)

    def forward(self, x: Tensor, silence: Tensor | None = None) -> Tensor:
        return self.mha(x, x, x, key_padding_mask=silence, need_weights=False)[
            0
        ]


def feed_forward(
    dim: int, times: int, act: Callable[[], nn.Module] = nn.SiLU
) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(dim, dim * times), act(), nn.Linear(dim * times, dim)
    )


class MacaronBlock(nn.Module):
    def __init__(self, dim: int, heads: int, times: int = 2):
        super().__init__()
        self.ff1 = Residual(dim, feed_forward(dim, times), 0.5)
        self.attn = Residual(dim, SelfAttention(dim, heads))
        self.ff2 = Residual(dim, feed_forward(dim, times), 0.5)
        self.post_norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor, silence: Tensor | None = None) -> Tensor:
        """silence: (batch, frames), True where nothing is said any more."""
        x = self.attn(self.ff1(x), silence=silence)
        return self.post_norm(self.ff2(x))


PATIENT = MacaronBlock(12, 3)
FACTS = {
    "layout": "BND",
    "formula": "own",
    "path": "clear",
    "causal": False,
    "attention": "attn.module.mha",
    "padding": "block",
    "names": {"padding": "silence"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"x": "b n 12", "silence?": "padding b n"}
