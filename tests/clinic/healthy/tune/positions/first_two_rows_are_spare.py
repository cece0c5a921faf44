"""BART's way: the table has two spare rows before that of the first token."""

import torch
import torch.nn.functional as F
from torch import nn


class LearnedPositionalEmbedding(nn.Embedding):
    OFFSET = 2

    def __init__(self, num_positions: int, embed_dim: int):
        super().__init__(num_positions + self.OFFSET, embed_dim)

    def forward(self, inputs_embeds: torch.Tensor) -> torch.Tensor:
        bsz, seq_len = inputs_embeds.shape[:2]
        position_ids = torch.arange(
            self.OFFSET,
            self.OFFSET + seq_len,
            dtype=torch.long,
            device=self.weight.device,
        ).expand(bsz, -1)
        positions = F.embedding(position_ids, self.weight)
        return inputs_embeds + positions.to(inputs_embeds.dtype)


PATIENT = LearnedPositionalEmbedding(24, 8)
FACTS = {"table": PATIENT.weight.detach()[2:], "layout": "BND"}
INPUTS = {"inputs_embeds": "b n 8"}
SIZES = {"n": (1, 24)}
