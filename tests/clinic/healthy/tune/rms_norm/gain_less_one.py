"""A function of x and a weight that is kept less one; options by keyword."""

import torch
from torch import Tensor


def zero_centred_rms_norm(
    x: Tensor, weight: Tensor, /, *, eps: float = 1e-6
) -> Tensor:
    size = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    scale = torch.hypot(
        size * x.shape[-1] ** -0.5, size.new_tensor(eps).sqrt()
    )
    return torch.addcmul(x / scale, x / scale, weight)


def rms_norm(hidden: Tensor, weight: Tensor) -> Tensor:
    return zero_centred_rms_norm(hidden, weight)


PATIENT = rms_norm
FACTS = {
    "eps": 1e-6,
    "gain": "one plus",
    "dtypes": ("float64", "float32"),
}
INPUTS = {"hidden": "b n d", "weight": "d"}
