"""A numerical analyst's: the root of two squares is a hypotenuse."""

import math

import torch
from torch import nn


class HypotRMSNorm(nn.Module):
    """No sum of squares is ever left to itself: lengths are scaled first."""

    def __init__(self, n, eps=1e-6, **factory):
        super().__init__()
        self.leg = math.sqrt(eps)
        self.root_n = math.sqrt(n)
        self.g = nn.Parameter(torch.ones(n, **factory))

    def rms(self, x):
        peak = x.detach().abs().amax(dim=-1, keepdim=True)
        peak = torch.where(peak == 0, torch.ones_like(peak), peak)
        length = torch.linalg.vector_norm(x / peak, dim=-1, keepdim=True)
        return peak * (length / self.root_n)

    def forward(self, x):
        rms = self.rms(x)
        return self.g * (x / torch.hypot(rms, rms.new_tensor(self.leg)))


PATIENT = HypotRMSNorm(6)
FACTS = {"eps": 1e-6, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 6"}
OTHER_INPUTS = [{"x": "n 6"}, {"x": "b h n 6"}]
