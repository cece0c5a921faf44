"""The first model's: a table of sinusoids, each of which stands twice."""

import numpy as np
import torch
from torch import nn


def sinusoid_table(n_pos, dim):
    """Sines in the left half, cosines in the right, as for embeddings."""
    rates = np.power(10000.0, -2.0 * np.arange(dim // 2) / dim)
    angles = np.arange(n_pos)[:, None] * rates[None, :]
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


class RotaryPositions(nn.Module):
    def __init__(self, head_size, max_positions=64):
        super().__init__()
        table = torch.from_numpy(sinusoid_table(max_positions, head_size))
        self.register_buffer("embed_positions", table, persistent=False)

    @staticmethod
    def apply_rotary(sinusoidal_pos, layer):
        sin, cos = sinusoidal_pos.chunk(2, dim=-1)
        # s0 s1 s2 -> s0 s0 s1 s1 s2 s2
        sin_pos = torch.stack([sin, sin], dim=-1).flatten(-2)
        cos_pos = torch.stack([cos, cos], dim=-1).flatten(-2)
        # x0 x1 x2 x3 -> -x1 x0 -x3 x2
        crossed = torch.stack([-layer[..., 1::2], layer[..., ::2]], dim=-1)
        return layer * cos_pos + crossed.flatten(-2) * sin_pos

    def forward(self, query_layer, past_key_values_length=0):
        seq_len = query_layer.shape[-2]
        position_ids = torch.arange(
            past_key_values_length,
            past_key_values_length + seq_len,
            device=query_layer.device,
        )
        pos = self.embed_positions[position_ids]
        return self.apply_rotary(pos.to(query_layer.dtype), query_layer)


PATIENT = RotaryPositions(8)
FACTS = {"pairs": "neighbours", "layout": "BHND", "width": 8, "longest": 64}
INPUTS = {"query_layer": "b h n 8", "past_key_values_length": "int s"}
SIZES = {"s": (0, 9)}
