"""A module makes cosines and sines, a function applies them to both."""

import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    """Cosines and sines, (batch, tokens, head_dim), for given positions."""

    inv_freq: torch.Tensor

    def __init__(self, head_dim, rope_theta=10000.0):
        super().__init__()
        even = torch.arange(0, head_dim, 2, dtype=torch.float64)
        inv_freq = rope_theta ** -(even / head_dim)
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    @torch.no_grad()
    def forward(self, x, position_ids):
        freqs = position_ids[:, :, None].double() * self.inv_freq
        emb = freqs.repeat(1, 1, 2)
        return emb.cos().to(x.dtype), emb.sin().to(x.dtype)


def rotate_half(x):
    middle = x.shape[-1] // 2
    return torch.cat((-x[..., middle:], x[..., :middle]), dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin, head_axis=1):
    cos, sin = cos.unsqueeze(head_axis), sin.unsqueeze(head_axis)
    q_embed = q * cos + rotate_half(q) * sin
    k_embed = k * cos + rotate_half(k) * sin
    return q_embed, k_embed


def rotate(query_states, position_ids):
    """Only one of the two, and one row of positions, to have it examined."""
    rotary_emb = RotaryEmbedding(query_states.shape[-1])
    cos, sin = rotary_emb(query_states, position_ids.unsqueeze(0))
    query_states, _ = apply_rotary_pos_emb(
        query_states, query_states, cos, sin
    )
    return query_states


PATIENT = rotate
FACTS = {
    "pairs": "halves",
    "layout": "BHND",
    "told": "positions",
    "name": "position_ids",
}
INPUTS = {"query_states": "b h n 2*d", "position_ids": "range n"}
