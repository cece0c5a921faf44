"""All sines, then all cosines."""

import torch


def sinusoids(length, channels):
    half = channels // 2
    rate = 10000.0 ** (-torch.arange(half, dtype=torch.float64) * 2 / channels)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * rate
    return torch.cat((angle.sin(), angle.cos()), dim=1).float()


PATIENT = sinusoids
FACTS = {"layout": "halves", "takes": ["long"], "dtypes": ("float32",)}
INPUTS = {"length": "int n", "channels": "int 2*d"}
SIZES = {"n": (1, 300), "d": (2, 24)}
