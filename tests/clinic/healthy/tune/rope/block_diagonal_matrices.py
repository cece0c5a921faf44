"""As a lecture shows it: a rotation matrix for each position."""

import math

import torch


def rotation_matrix(m, d):
    R = torch.zeros(d, d, dtype=torch.float64)
    for i in range(1, d // 2 + 1):
        theta = 10000 ** (-2 * (i - 1) / d)
        c, s = math.cos(m * theta), math.sin(m * theta)
        # rows and columns 2i-1 and 2i of the paper, counted from zero
        a, b = 2 * i - 2, 2 * i - 1
        R[a, a], R[a, b] = c, -s
        R[b, a], R[b, b] = s, c
    return R


def apply_rope(x, m0=0):
    n, d = x.shape[-2], x.shape[-1]
    assert d % 2 == 0, "RoPE needs an even dimension"
    R = torch.stack([rotation_matrix(m0 + m, d) for m in range(n)])
    return torch.einsum("nij,...nj->...ni", R.to(x.dtype), x)


PATIENT = apply_rope
FACTS = {"pairs": "neighbours", "layout": "BHND"}
INPUTS = {"x": "b h n 2*d", "m0": "int s"}
SIZES = {"s": (0, 9)}
