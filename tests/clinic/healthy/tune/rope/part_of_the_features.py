"""The first half of the features turns, the rest stays."""

import torch

FRACTION = 0.5


def partial_rope(x, offset=0):
    width = int(x.shape[-1] * FRACTION)
    turned, kept = x[..., :width], x[..., width:]
    half = width // 2
    rate = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    place = torch.arange(offset, offset + x.shape[-2], dtype=torch.float64)
    angle = place[:, None] * rate
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = turned[..., :half], turned[..., half:]
    turned = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
    return torch.cat((turned, kept), dim=-1)


PATIENT = partial_rope
FACTS = {"pairs": "halves", "layout": "BHND", "part": 0.5}
INPUTS = {"x": "b h n 4*d", "offset": "int s"}
SIZES = {"s": (0, 9)}
