"""Pairs of neighbours as complex numbers, turned by polar ones."""

import torch


def apply_rotary(x, start_pos=0):
    n, d = x.shape[-2:]
    freqs = 1.0 / (10000.0 ** (torch.arange(0, d, 2).double() / d))
    t = torch.arange(start_pos, start_pos + n).double()
    turns = torch.polar(torch.ones(n, d // 2).double(), torch.outer(t, freqs))
    pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)


PATIENT = apply_rotary
FACTS = {"pairs": "neighbours", "layout": "BHND"}
INPUTS = {"x": "b h n 2*d", "start_pos": "int s"}
SIZES = {"s": (0, 9)}
