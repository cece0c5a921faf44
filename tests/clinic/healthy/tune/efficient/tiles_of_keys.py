"""Tiles of keys with a running maximum, sum and output."""

import torch

TILE = 4


def flash(q, k, v):
    scale = q.shape[-1] ** -0.5
    top = torch.full((*q.shape[:-1], 1), -torch.inf, dtype=q.dtype)
    total = torch.zeros_like(top)
    out = q.new_zeros(*q.shape[:-1], v.shape[-1])
    for start in range(0, k.shape[-2], TILE):
        k_tile = k[..., start : start + TILE, :]
        v_tile = v[..., start : start + TILE, :]
        scores = q @ k_tile.transpose(-2, -1) * scale
        new_top = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        powers = torch.exp(scores - new_top)
        fading = torch.exp(top - new_top)
        total = total * fading + powers.sum(dim=-1, keepdim=True)
        out = out * fading + powers @ v_tile
        top = new_top
    return out / total


PATIENT = flash
FACTS = {"layout": "any"}
INPUTS = {"q": "b h n d", "k": "b h m d", "v": "b h m e"}
SIZES = {"m": (1, 17)}
