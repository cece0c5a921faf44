"""A function that makes functions: eps is closed over, an einsum squares."""

from collections.abc import Callable

import torch
from torch import Tensor

Norm = Callable[[Tensor, Tensor], Tensor]


def make_rms_norm(eps: float) -> Norm:
    def power(h: Tensor) -> Tensor:
        return torch.einsum("...c,...c->...", h, h) / h.shape[-1]

    def norm(x: Tensor, g: Tensor) -> Tensor:
        out_dtype = x.dtype
        h = x if x.dtype == torch.float64 else x.to(torch.float32)
        h = h / torch.sqrt(power(h) + eps)[..., None]
        return (g.to(h.dtype) * h).to(out_dtype)

    return norm


PATIENT = make_rms_norm(1e-5)
FACTS = {"eps": 1e-5}
INPUTS = {"x": "b n d", "g": "d"}
