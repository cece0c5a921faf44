"""A music transformer: gains are kept about zero, so decay is harmless."""

import contextlib

import torch
from torch import nn


class StableNorm(nn.Module):
    """Weight decay pulls every parameter to zero, and zero is the identity."""

    def __init__(self, features, variance_epsilon=1e-5):
        super().__init__()
        self.variance_epsilon = variance_epsilon
        self.gain_delta = nn.Parameter(torch.zeros(features))
        self.offset = nn.Parameter(torch.zeros(features))

    @property
    def weight(self):
        return 1.0 + self.gain_delta

    def statistics(self, x):
        var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return mean, torch.rsqrt(var + self.variance_epsilon)

    def forward(self, hidden):
        autocast_off = (
            torch.autocast(hidden.device.type, enabled=False)
            if torch.is_autocast_enabled()
            else contextlib.nullcontext()
        )
        wide = torch.promote_types(hidden.dtype, torch.float32)
        with autocast_off:
            x = hidden.to(wide)
            mean, inv = self.statistics(x)
            y = (x - mean) * inv
            y = y * self.weight.to(wide) + self.offset.to(wide)
        return y.to(hidden.dtype)

    def extra_repr(self):
        return f"{self.offset.numel()}, eps={self.variance_epsilon}"


PATIENT = StableNorm(4)
FACTS = {
    "eps": 1e-5,
    "gain": "one plus",
    "dtypes": ("float64", "float32", "float16", "bfloat16"),
}
INPUTS = {"hidden": "b n 4"}
OTHER_INPUTS = [{"hidden": "n 4"}, {"hidden": "b h n 4"}]
