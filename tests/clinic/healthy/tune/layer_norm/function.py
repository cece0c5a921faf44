"""A function of gain and shift, in float32 if the input is half as wide."""

import torch


def layer_norm(x, weight, bias, eps=1e-5):
    dtype = x.dtype
    if dtype in (torch.float16, torch.bfloat16):
        x = x.float()
    mean = torch.mean(x, dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    x = (x - mean) / (variance + eps) ** 0.5
    return (x * weight + bias).to(dtype)


PATIENT = layer_norm
FACTS = {"eps": 1e-5}
INPUTS = {"x": "b n d", "weight": "d", "bias": "d"}
