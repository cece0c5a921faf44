"""Functional: the scale is the first argument, and nothing has a state."""

import torch


def rms_norm(scale, x, *, axis=-1, epsilon=1e-6):
    mean_square = torch.mean(torch.square(x), dim=axis, keepdim=True)
    return x * (torch.rsqrt(mean_square + epsilon) * scale)


PATIENT = rms_norm
FACTS = {"eps": 1e-6, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n d", "scale": "d"}
