"""A fine-tuning library's: a cache of pairs, and positions if told."""

import torch
from torch import nn


class RotaryPositionalEmbeddings(nn.Module):
    """Rotates [b, s, n_h, h_d], neighbours by neighbours.

    The cache is [max_seq_len, dim // 2, 2]: a cosine and a sine each. It is
    made in single precision, and so is what is computed with it.
    """

    def __init__(self, dim: int, max_seq_len: int = 4096, base: int = 10_000):
        super().__init__()
        self.dim = dim
        self.base = base
        self.max_seq_len = max_seq_len
        self.reset_cache()

    def reset_cache(self) -> None:
        """To be called again where a model was made without memory."""
        power = torch.arange(0, self.dim, 2).float() / self.dim
        theta = 1.0 / self.base**power
        idx = torch.arange(self.max_seq_len, dtype=theta.dtype)
        idx_theta = torch.einsum("i, j -> ij", idx, theta)
        cache = torch.stack([idx_theta.cos(), idx_theta.sin()], dim=-1)
        self.register_buffer("cache", cache, persistent=False)

    def forward(
        self, x: torch.Tensor, *, input_pos: torch.Tensor | None = None
    ) -> torch.Tensor:
        seq_len = x.size(1)
        cache = self.cache[:seq_len]
        if input_pos is not None:
            cache = self.cache[input_pos]
        # one row of positions for all texts, or one for each
        cache = cache.reshape(-1, seq_len, 1, self.dim // 2, 2)
        cos, sin = cache.unbind(-1)

        a, b = x.float().unflatten(-1, (self.dim // 2, 2)).unbind(-1)
        out = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1)
        return out.flatten(3).type_as(x)


PATIENT = RotaryPositionalEmbeddings(8, max_seq_len=512)
FACTS = {
    "pairs": "neighbours",
    "layout": "BNHD",
    "width": 8,
    "longest": 512,
    "told": "positions",
    "name": "input_pos",
    "precision": "float32",
    "dtypes": ("float32", "bfloat16"),
}
INPUTS = {"x": "b n h 8", "input_pos": "range n"}
