"""As image models have it: width first, an omega, sines beside cosines."""

import numpy as np
import torch


def get_1d_sincos_pos_embed(embed_dim, length):
    assert embed_dim % 2 == 0
    omega = np.arange(embed_dim // 2, dtype=np.float64)
    omega /= embed_dim / 2.0
    omega = 1.0 / 10000**omega  # (D/2,)

    pos = np.arange(length, dtype=np.float64).reshape(-1)  # (M,)
    out = np.einsum("m,d->md", pos, omega)  # (M, D/2)

    emb = np.concatenate([np.sin(out), np.cos(out)], axis=1)  # (M, D)
    return torch.from_numpy(emb.astype(np.float32))


PATIENT = get_1d_sincos_pos_embed
FACTS = {
    "layout": "halves",
    "width_first": True,
    "takes": ["long"],
    "dtypes": ("float32",),
}
INPUTS = {"embed_dim": "int 2*d", "length": "int n"}
SIZES = {"n": (1, 300), "d": (2, 24)}
