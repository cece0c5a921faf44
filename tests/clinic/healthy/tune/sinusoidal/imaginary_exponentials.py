"""Powers of e: the sine is the real part of i times the conjugate."""

import torch


def pos_enc(L, d):
    k = torch.arange(d // 2, dtype=torch.float64)
    w = 10000 ** (-2 * k / d)
    t = torch.arange(L, dtype=torch.float64)
    z = torch.exp(1j * torch.outer(t, w))
    # i (cos - i sin) = sin + i cos
    pairs = torch.view_as_real((1j * z.conj()).resolve_conj())
    return pairs.reshape(L, d).float()


PATIENT = pos_enc
FACTS = {"layout": "pairs", "takes": ["long"], "dtypes": ("float32",)}
INPUTS = {"L": "int n", "d": "int 2*d"}
SIZES = {"n": (1, 300), "d": (2, 24)}
