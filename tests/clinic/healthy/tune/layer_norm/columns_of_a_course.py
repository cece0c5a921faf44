"""A course's cells: tokens become columns, and are normed down axis 0."""

import torch


def layernorm_forward(x, gamma, beta, ln_param=None):
    eps = (ln_param or {}).get("eps", 1e-5)

    # (N, D) as in the lecture, then transposed to norm as batch norm does
    flat = x.reshape(-1, x.shape[-1]).t()
    mu = flat.sum(0) / flat.size(0)
    xmu = flat - mu
    var = (xmu * xmu).sum(0) / flat.size(0)
    ivar = 1.0 / torch.sqrt(var + eps)
    xhat = (xmu * ivar).t()

    out = gamma * xhat + beta
    return out.view_as(x)


PATIENT = layernorm_forward
FACTS = {"eps": 1e-5, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n d", "gamma": "d", "beta": "d"}
