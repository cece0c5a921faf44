"""A research repository's: out of autocast, and back in the first type."""

import torch
from torch import nn


class RMSLayerNorm(nn.Module):
    def __init__(self, size, *, elementwise_affine=True, eps=1e-5):
        super().__init__()
        self.normalized_shape = (size,)
        self.eps = eps
        if elementwise_affine:
            self.weight = nn.Parameter(torch.ones(self.normalized_shape))
        else:
            self.register_parameter("weight", None)

    def forward(self, x):
        with torch.autocast(enabled=False, device_type=x.device.type):
            og_dtype = x.dtype
            if torch.finfo(og_dtype).bits < 32:
                x = x.to(torch.float32)
            variance = x.pow(2).mean(-1, keepdim=True)
            x = x * torch.rsqrt(variance + self.eps)
            x = x.to(og_dtype)

        return x if self.weight is None else self.weight * x


PATIENT = RMSLayerNorm(10)
FACTS = {"eps": 1e-5}
INPUTS = {"x": "b n 10"}
