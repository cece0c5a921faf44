"""A server's: all texts' tokens in one row; cosines and sines in one cache."""

import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    """Tokens of many requests stand in one row, each with its position.

    Args:
        head_size: features of a head
        rotary_dim: how many of them, from the first on, are rotated
        max_position: the length of the cache
        is_neox_style: halves make pairs, and not neighbours
    """

    def __init__(
        self,
        head_size: int,
        rotary_dim: int,
        max_position: int = 128,
        base: float = 10000.0,
        is_neox_style: bool = True,
    ) -> None:
        super().__init__()
        self.head_size = head_size
        self.rotary_dim = rotary_dim
        self.is_neox_style = is_neox_style
        exponent = torch.arange(0, rotary_dim, 2).float() / rotary_dim
        t = torch.arange(max_position, dtype=torch.float)
        freqs = torch.einsum("i,j->ij", t, base**-exponent)
        cache = torch.cat((freqs.cos(), freqs.sin()), dim=-1)
        self.register_buffer("cos_sin_cache", cache, persistent=False)

    def _split(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.is_neox_style:
            return x.chunk(2, dim=-1)
        return x[..., ::2], x[..., 1::2]

    def _join(self, o1: torch.Tensor, o2: torch.Tensor) -> torch.Tensor:
        if self.is_neox_style:
            return torch.cat((o1, o2), dim=-1)
        return torch.stack((o1, o2), dim=-1).flatten(-2)

    def forward(
        self, positions: torch.Tensor, query: torch.Tensor
    ) -> torch.Tensor:
        """query is [num_tokens, num_heads, head_size], or has two axes."""
        heads = query.reshape(len(positions), -1, self.head_size)
        rot, passed = heads.split(
            [self.rotary_dim, self.head_size - self.rotary_dim], dim=-1
        )
        cos_sin = self.cos_sin_cache.index_select(0, positions)
        cos, sin = cos_sin.to(query.dtype).unsqueeze(1).chunk(2, dim=-1)
        x1, x2 = self._split(rot)
        rot = self._join(x1 * cos - x2 * sin, x2 * cos + x1 * sin)
        return torch.cat((rot, passed), dim=-1).view(query.shape)


PATIENT = RotaryEmbedding(head_size=12, rotary_dim=6)
FACTS = {
    "pairs": "halves",
    "layout": "NHD",
    "width": 12,
    "part": 0.5,
    "longest": 128,
    "told": "positions",
    "name": "positions",
    "dtypes": ("float32", "bfloat16"),
}
INPUTS = {"query": "n h 12", "positions": "range n"}
