"""The table is doubled by the addition theorems until it is long enough."""

import torch


def sincos(length, width):
    """The upper half of the features are sines, the lower cosines."""
    k = torch.arange(width // 2, dtype=torch.float64)
    step = torch.pow(10000.0, -2 * k / width)
    sin, cos = torch.zeros_like(step)[None], torch.ones_like(step)[None]
    while len(sin) < length:
        s, c = torch.sin(len(sin) * step), torch.cos(len(sin) * step)
        sin, cos = (
            torch.cat((sin, sin * c + cos * s)),
            torch.cat((cos, cos * c - sin * s)),
        )
    table = torch.cat((sin[:length], cos[:length]), dim=1)
    return table.to(torch.get_default_dtype())


PATIENT = sincos
FACTS = {"layout": "halves", "takes": [], "dtypes": ("float32",)}
INPUTS = {"length": "int n", "width": "int 2*d"}
SIZES = {"n": (1, 200), "d": (2, 24)}
