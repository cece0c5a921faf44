"""The partner of a feature is half a vector away: rolled, with a sign."""

import torch


def rope(q, *, base=10000.0, pos):
    """q is (..., n, d), and pos holds the n positions."""
    d = q.shape[-1]
    i = torch.arange(d, device=q.device)
    sign = torch.where(i < d // 2, -1.0, 1.0).to(q.dtype)
    rate = torch.pow(base, -2.0 * (i % (d // 2)).double() / d)
    angle = pos.double().unsqueeze(-1) * rate
    cos, sin = angle.cos().to(q.dtype), angle.sin().to(q.dtype)
    return q * cos + q.roll(d // 2, dims=-1) * sign * sin


PATIENT = rope
FACTS = {
    "pairs": "halves",
    "layout": "BHND",
    "told": "positions",
    "name": "pos",
}
INPUTS = {"q": "b h n 2*d", "pos": "range n"}
