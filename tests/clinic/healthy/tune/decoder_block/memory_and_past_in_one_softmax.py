"""One attention for both: keys of the memory stand before those of x."""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Shape(NamedTuple):
    width: int
    heads: int
    hidden: int
    memory_width: int


class JoinedBlock(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        d, m = shape.width, shape.memory_width
        self.norm_x = nn.LayerNorm(d)
        self.norm_memory = nn.LayerNorm(m)
        self.query = nn.Linear(d, d)
        self.own_key_value = nn.Linear(d, 2 * d)
        self.memory_key_value = nn.Linear(m, 2 * d)
        self.output = nn.Linear(d, d)
        self.norm_network = nn.LayerNorm(d)
        self.network = nn.Sequential(
            nn.Linear(d, shape.hidden),
            nn.Mish(),
            nn.Linear(shape.hidden, d),
        )

    def visible(self, n: int, real: Tensor) -> Tensor:
        """All of the memory that is real, and of x what is not later."""
        past = torch.ones(n, n, dtype=torch.bool, device=real.device).tril()
        past = past.expand(len(real), n, n)
        return torch.cat((real[:, None].expand(-1, n, -1), past), dim=2)

    def attend(self, x: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        x, memory = self.norm_x(x), self.norm_memory(memory)
        pairs = (self.memory_key_value(memory), self.own_key_value(x))
        k, v = torch.cat(pairs, dim=1).chunk(2, dim=-1)
        heads = self.shape.heads
        q = self.query(x).unflatten(-1, (heads, -1))
        k, v = (t.unflatten(-1, (heads, -1)) for t in (k, v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        seen = self.visible(x.shape[1], real).unsqueeze(1)
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        mixed = torch.einsum("bhqk,bkhd->bqhd", weights, v)
        return self.output(mixed.flatten(2))

    def forward(
        self, x: Tensor, memory: Tensor, real: Tensor | None = None
    ) -> Tensor:
        if real is None:
            real = torch.ones(
                memory.shape[:2], dtype=torch.bool, device=memory.device
            )
        x = x + self.attend(x, memory, real)
        return x + self.network(self.norm_network(x))


PATIENT = JoinedBlock(Shape(width=12, heads=2, hidden=16, memory_width=9))
FACTS = {
    "formula": "own",
    "causal": True,
    "layout": "BND",
    "padding": "keep",
    "feed_forward": "network",
    "n_heads": 2,
}
INPUTS = {"x": "b n 12", "memory": "b m 9", "real?": "real b m"}
