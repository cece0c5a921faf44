"""A state space model's: beside the input there may be a gate."""

import torch
import torch.nn.functional as F
from torch import nn


class RMSNormGated(nn.Module):
    """With a gate z, either x * silu(z) is normed, or the norm gated."""

    def __init__(self, hidden_size, eps=1e-5, norm_before_gate=False):
        super().__init__()
        self.eps = eps
        self.norm_before_gate = norm_before_gate
        self.weight = nn.Parameter(torch.empty(hidden_size))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.ones_(self.weight)

    def norm(self, x, weight):
        rstd = 1 / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + self.eps)
        return x * rstd * weight

    def forward(self, x, z=None):
        dtype, weight = x.dtype, self.weight
        if dtype in (torch.float16, torch.bfloat16):  # upcast
            x, weight = x.float(), weight.float()
            z = None if z is None else z.float()
        if z is None:
            out = self.norm(x, weight)
        elif self.norm_before_gate:
            out = self.norm(x, weight) * F.silu(z)
        else:
            out = self.norm(x * F.silu(z), weight)
        return out.to(dtype)


PATIENT = RMSNormGated(12)
FACTS = {"eps": 1e-5}
INPUTS = {"x": "b n 12"}
