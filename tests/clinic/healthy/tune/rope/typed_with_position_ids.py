"""Typed code of a product: a configuration, and positions that are given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import LongTensor, Tensor


@dataclass(frozen=True)
class RopeConfig:
    head_dim: int
    max_position_embeddings: int = 128
    rope_theta: float = 10_000.0

    def __post_init__(self) -> None:
        if self.head_dim % 2:
            raise ValueError(f"head_dim must be even, got {self.head_dim}")


class RotaryTable:
    """Angles in double precision; what is given back has the input's type."""

    def __init__(self, config: RopeConfig) -> None:
        half = config.head_dim // 2
        inv_freq = config.rope_theta ** (-np.arange(half) / half)
        positions = np.arange(config.max_position_embeddings)
        self._angles = torch.from_numpy(np.multiply.outer(positions, inv_freq))

    def cos_sin(
        self, position_ids: LongTensor, like: Tensor
    ) -> tuple[Tensor, Tensor]:
        angles = self._angles.to(like.device)[position_ids]
        return angles.cos().type_as(like), angles.sin().type_as(like)

    def __call__(self, hidden: Tensor, position_ids: LongTensor) -> Tensor:
        cos, sin = self.cos_sin(position_ids, hidden)
        left, right = torch.tensor_split(hidden, 2, dim=-1)
        return torch.cat(
            [left * cos - right * sin, right * cos + left * sin], dim=-1
        )


PATIENT = RotaryTable(RopeConfig(head_dim=8))
FACTS = {
    "pairs": "halves",
    "layout": "BHND",
    "told": "positions",
    "name": "position_ids",
    "width": 8,
    "longest": 128,
}
INPUTS = {"hidden": "b h n 8", "position_ids": "range n"}
