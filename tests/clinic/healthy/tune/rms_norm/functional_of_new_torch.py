"""PyTorch's function where it exists, and the same by hand where not."""

import torch
import torch.nn.functional as F
from torch import nn

HAS_RMS_NORM = hasattr(F, "rms_norm")


class RMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6, dtype=None, device=None):
        super().__init__()
        self.normalized_shape = (hidden_size,)
        self.weight = nn.Parameter(
            torch.ones(hidden_size, dtype=dtype, device=device)
        )
        self.eps = eps

    def forward(self, x):
        if HAS_RMS_NORM:
            return F.rms_norm(
                x,
                normalized_shape=self.normalized_shape,
                weight=self.weight,
                eps=self.eps,
            )
        power = x.pow(2).mean(dim=-1, keepdim=True)
        normed = x / (power + self.eps).sqrt()
        return normed * self.weight


PATIENT = RMSNorm(7)
FACTS = {"eps": 1e-6, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 7"}
