"""Rates by logspace, in the type that torch has; sines beside cosines."""

import torch


def build_pe(num_tokens, model_dim):
    n_freqs, rem = divmod(model_dim, 2)
    if rem:
        raise ValueError("model_dim has to be even")
    # 1, ..., 1/10000: the last one belongs to the next octave
    freqs = torch.logspace(0, -4, n_freqs + 1)[:n_freqs]
    grid = torch.arange(num_tokens).float().unsqueeze(-1) * freqs
    pe = torch.empty(num_tokens, model_dim)
    torch.sin(grid, out=pe[:, :n_freqs])
    torch.cos(grid, out=pe[:, n_freqs:])
    return pe


PATIENT = build_pe
FACTS = {"layout": "halves", "takes": [], "dtypes": ("float32",)}
INPUTS = {"num_tokens": "int n", "model_dim": "int 2*d"}
SIZES = {"n": (1, 200), "d": (2, 24)}
