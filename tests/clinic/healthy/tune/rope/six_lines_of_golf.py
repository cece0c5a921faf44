"""As short as it gets; tokens stand before heads."""

import torch


def rope(x, t=0, base=1e4):
    n, d = x.shape[1], x.shape[-1]
    w = base ** (torch.arange(0, -d, -2).double() / d)
    a = torch.outer(torch.arange(t, t + n).double(), w)[:, None]
    c, s = a.cos().to(x), a.sin().to(x)
    u, v = x.unflatten(-1, (2, -1)).unbind(-2)
    return torch.stack((u * c - v * s, v * c + u * s), -2).flatten(-2)


PATIENT = rope
FACTS = {"pairs": "halves", "layout": "BNHD"}
INPUTS = {"x": "b n h 2*d", "t": "int s"}
SIZES = {"s": (0, 9)}
