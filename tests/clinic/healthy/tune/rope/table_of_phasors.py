"""Complex numbers, made in advance; neighbours are real and imaginary."""

import torch


def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = 1.0 / theta ** (torch.arange(0, dim, 2)[: dim // 2].double() / dim)
    t = torch.arange(end, dtype=torch.float64)
    freqs = torch.outer(t, freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


TABLE = precompute_freqs_cis(8, 64)


def apply_rotary_emb(x, start_pos=0):
    wide = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2))
    freqs = TABLE[start_pos : start_pos + x.shape[-2]]
    return torch.view_as_real(wide * freqs).flatten(-2).type_as(x)


PATIENT = apply_rotary_emb
FACTS = {"pairs": "neighbours", "layout": "BHND", "width": 8, "longest": 64}
INPUTS = {"x": "b h n 8", "start_pos": "int s"}
SIZES = {"s": (0, 9)}
