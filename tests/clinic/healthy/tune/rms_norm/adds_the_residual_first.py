"""For servers: the residual is added first, if there is one, and handed on."""

import torch
from torch import nn


class FusedAddRMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, x, residual=None):
        if residual is not None:
            x = residual = x + residual
        wide = torch.promote_types(x.dtype, torch.float32)
        y = x.to(wide)
        variance = torch.einsum("...i,...i->...", y, y) / y.shape[-1]
        y = y * (variance + self.variance_epsilon).rsqrt()[..., None]
        y = (y * self.weight.to(wide)).to(x.dtype)
        return y if residual is None else (y, residual)


PATIENT = FusedAddRMSNorm(8)
FACTS = {"eps": 1e-6}
INPUTS = {"x": "b n 8"}
