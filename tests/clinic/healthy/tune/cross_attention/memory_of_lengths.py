"""The memory comes first; its lengths say where each text ends."""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Attended(NamedTuple):
    context: Tensor
    alignments: Tensor


class MultiHeadedAttention(nn.Module):
    def __init__(self, head_count: int, model_dim: int, memory_dim: int):
        assert model_dim % head_count == 0
        self.dim_per_head = model_dim // head_count
        super().__init__()
        self.head_count = head_count
        self.linear_keys = nn.Linear(memory_dim, model_dim)
        self.linear_values = nn.Linear(memory_dim, model_dim)
        self.linear_query = nn.Linear(model_dim, model_dim)
        self.final_linear = nn.Linear(model_dim, model_dim)

    def shape(self, x: Tensor) -> Tensor:
        """Projection."""
        batch = x.size(0)
        x = x.view(batch, -1, self.head_count, self.dim_per_head)
        return x.transpose(1, 2)

    def unshape(self, x: Tensor) -> Tensor:
        """Compute context."""
        dim = self.head_count * self.dim_per_head
        return x.transpose(1, 2).contiguous().view(x.size(0), -1, dim)

    def forward(self, memory_bank, source, memory_lengths=None) -> Attended:
        # 1) Project key, value, and query.
        key = self.shape(self.linear_keys(memory_bank))
        value = self.shape(self.linear_values(memory_bank))
        query = self.shape(self.linear_query(source))

        # 2) Calculate and scale scores.
        query = query / self.dim_per_head**0.5
        scores = torch.matmul(query, key.transpose(2, 3))
        if memory_lengths is not None:
            steps = torch.arange(key.size(2), device=key.device)
            pad = steps.unsqueeze(0) >= memory_lengths.unsqueeze(1)
            scores.masked_fill_(pad[:, None, None, :], float("-inf"))

        # 3) Apply attention and compute context vectors.
        attn = torch.softmax(scores, dim=-1)
        context = self.unshape(torch.matmul(attn, value))
        return Attended(self.final_linear(context), attn)


PATIENT = MultiHeadedAttention(4, 12, 7)
FACTS = {"layout": "BND", "mask": "lengths", "n_heads": 4}
INPUTS = {
    "source": "b n 12",
    "memory_bank": "b m 7",
    "memory_lengths?": "lengths b m",
}
