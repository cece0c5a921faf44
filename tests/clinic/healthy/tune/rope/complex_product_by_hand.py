"""Real and imaginary parts multiplied by hand, a table kept by lru_cache."""

from functools import lru_cache

import torch

MAX_CONTEXT = 48


@lru_cache(maxsize=8)
def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2).double() / dim))
    freqs = torch.arange(end).double().unsqueeze(1) * freqs.unsqueeze(0)
    table = torch.stack([freqs.cos(), freqs.sin()], dim=-1)
    return table.reshape(1, end, 1, dim // 2, 2)


def complex_mult(A, c, d):
    a, b = A[..., 0:1], A[..., 1:2]
    ro = a * c - b * d
    co = a * d + b * c
    return torch.cat((ro, co), dim=-1)


def apply_rotary_emb(xq, start_pos):
    bsz, seqlen, n_heads, head_dim = xq.shape
    table = precompute_freqs_cis(head_dim, MAX_CONTEXT)
    table = table[:, start_pos : start_pos + seqlen].to(xq.dtype)
    assert table.shape[1] == seqlen, "context is too long"
    xq = xq.reshape(bsz, seqlen, n_heads, -1, 2)
    c, d = table[..., 0:1], table[..., 1:2]
    return complex_mult(xq, c, d).flatten(3)


PATIENT = apply_rotary_emb
FACTS = {"pairs": "neighbours", "layout": "BNHD", "longest": 48}
INPUTS = {"xq": "b n h 2*d", "start_pos": "int s"}
SIZES = {"s": (0, 9)}
