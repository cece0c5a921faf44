"""Of a head's features the first rotary_dim are rotated, every two a pair."""

import torch


def rotate_every_two(x):
    x1 = x[..., ::2]
    x2 = x[..., 1::2]
    return torch.stack((-x2, x1), dim=-1).flatten(-2)


def apply_rotary(x, offset=0, rotary_dim=4):
    seq = x.shape[-2]
    inv = 1.0 / 10000 ** (
        torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim
    )
    angles = torch.outer(torch.arange(seq, dtype=torch.float64) + offset, inv)
    sin = angles.sin().repeat_interleave(2, dim=-1).to(x.dtype)
    cos = angles.cos().repeat_interleave(2, dim=-1).to(x.dtype)
    head, tail = x[..., :rotary_dim], x[..., rotary_dim:]
    head = head * cos + rotate_every_two(head) * sin
    return torch.cat([head, tail], dim=-1)


PATIENT = apply_rotary
FACTS = {"pairs": "neighbours", "layout": "BHND", "part": 0.5}
INPUTS = {"x": "b h n 8", "offset": "int s"}
SIZES = {"s": (0, 9)}
