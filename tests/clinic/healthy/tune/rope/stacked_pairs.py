"""Even and odd features, turned and stacked again; positions are given."""

import torch


def rotate(x, positions):
    d = x.shape[-1]
    theta = 10000.0 ** (-torch.arange(0, d, 2).double() / d)
    angle = positions[:, None].double() * theta
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = torch.stack(
        (even * cos - odd * sin, even * sin + odd * cos), dim=-1
    )
    return turned.flatten(-2)


PATIENT = rotate
FACTS = {"pairs": "neighbours", "told": "positions", "name": "positions"}
INPUTS = {"x": "b h n 2*d", "positions": "range n"}
