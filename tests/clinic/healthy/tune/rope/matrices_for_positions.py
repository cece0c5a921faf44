"""A course's assignment: a matrix of two by two for each pair and position."""

import torch
from torch import nn


class RotaryPositionalEmbedding(nn.Module):
    """Tables grow when later positions are asked for, and are never saved."""

    def __init__(self, d_k: int, theta: float = 10000.0, n_first: int = 4):
        super().__init__()
        if d_k % 2:
            raise ValueError("d_k has to be even")
        self.d_k, self.theta = d_k, theta
        table = self.matrices(n_first)
        self.register_buffer("R", table, persistent=False)

    def matrices(self, n: int) -> torch.Tensor:
        """(n, d_k / 2, 2, 2), always in float64."""
        k = torch.arange(self.d_k // 2, dtype=torch.float64)
        speed = torch.pow(self.theta, -2 * k / self.d_k)
        angle = torch.arange(n, dtype=torch.float64)[:, None] * speed
        cos, sin = angle.cos(), angle.sin()
        top = torch.stack((cos, -sin), dim=-1)
        bottom = torch.stack((sin, cos), dim=-1)
        return torch.stack((top, bottom), dim=-2)

    def _apply(self, fn, recurse=True):
        """.half() and the like leave the table precise."""
        super()._apply(fn, recurse)
        if self.R.dtype != torch.float64:
            self.R = self.matrices(len(self.R)).to(self.R.device)
        return self

    def forward(self, x: torch.Tensor, token_positions: torch.Tensor):
        """x: (..., seq, heads, d_k); token_positions: (seq,)"""
        latest = int(token_positions.max())
        if latest >= len(self.R):
            grown = self.matrices(max(latest + 1, 2 * len(self.R)))
            self.R = grown.to(self.R.device)
        R = self.R[token_positions].to(x.dtype)
        pairs = x.unflatten(-1, (-1, 2))
        return torch.einsum("skij,...shkj->...shki", R, pairs).flatten(-2)


PATIENT = RotaryPositionalEmbedding(6)
FACTS = {
    "pairs": "neighbours",
    "layout": "BNHD",
    "told": "positions",
    "name": "token_positions",
    "width": 6,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"x": "b n h 6", "token_positions": "range n"}
