"""Sines and cosines stacked and laid flat."""

import torch


def sinusoidal_positions(n_ctx, dim):
    inv_freq = 1.0 / (
        10000 ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    )
    angles = torch.outer(torch.arange(n_ctx, dtype=torch.float64), inv_freq)
    table = torch.stack((angles.sin(), angles.cos()), dim=-1)
    return table.flatten(1).to(torch.float32)


PATIENT = sinusoidal_positions
FACTS = {"layout": "pairs", "takes": ["long"], "dtypes": ("float32",)}
INPUTS = {"n_ctx": "int n", "dim": "int 2*d"}
SIZES = {"n": (1, 300), "d": (2, 24)}
