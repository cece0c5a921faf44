"""Linear algebra: a projection takes the mean away, the rest is an einsum."""

import torch


def layer_norm(gamma, beta, x, eps=1e-5):
    n = x.size(-1)
    eye = torch.eye(n, dtype=x.dtype, device=x.device)
    H = eye - torch.ones_like(eye) / n
    y = torch.matmul(x, H)
    variance = torch.einsum("...i,...i->...", y, y).div(n).unsqueeze(-1)
    y = y * variance.add(eps).rsqrt()
    return torch.einsum("...i,i->...i", y, gamma) + beta


PATIENT = layer_norm
FACTS = {"eps": 1e-5, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n d", "gamma": "d", "beta": "d"}
