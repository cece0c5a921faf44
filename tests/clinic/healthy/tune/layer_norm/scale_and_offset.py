"""Functional: scale and offset are arguments, the mean a product of ones."""

import torch


def layer_norm(x, scale, offset, *, epsilon=1e-6):
    wide = torch.promote_types(x.dtype, torch.float32)
    h = x.to(wide)
    d = h.shape[-1]
    h = h - torch.einsum("...d->...", h)[..., None] / d
    var = torch.einsum("...d,...d->...", h, h)[..., None] / d
    inv = scale.to(wide) * torch.rsqrt(var + epsilon)
    return (inv * h + offset.to(wide)).to(x.dtype)


PATIENT = layer_norm
FACTS = {"eps": 1e-6}
INPUTS = {"x": "b n d", "scale": "d", "offset": "d"}
