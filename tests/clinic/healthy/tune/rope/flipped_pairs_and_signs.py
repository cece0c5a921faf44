"""Each pair is flipped and multiplied by a signed sine; no slices at all."""

import torch


def rotary(x: torch.Tensor, *, pos_offset: int = 0) -> torch.Tensor:
    *_, length, width = x.shape
    pair = torch.div(torch.arange(width), 2, rounding_mode="floor")
    sign = torch.where(torch.arange(width) % 2 == 0, -1.0, 1.0).double()
    rate = torch.pow(10_000.0, -2.0 * pair.double() / width)
    when = torch.arange(length, dtype=torch.float64).add(pos_offset)
    angle = when.unsqueeze(-1).mul(rate)
    partner = x.unflatten(-1, (width // 2, 2)).flip(-1).flatten(-2)
    cosine = angle.cos().to(x.dtype)
    signed_sine = angle.sin().mul(sign).to(x.dtype)
    return torch.addcmul(x * cosine, partner, signed_sine)


PATIENT = rotary
FACTS = {"pairs": "neighbours", "layout": "BHND"}
INPUTS = {"x": "b h n 2*d", "pos_offset": "int s"}
SIZES = {"s": (0, 9)}
