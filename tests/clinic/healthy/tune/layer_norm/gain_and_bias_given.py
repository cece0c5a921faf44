"""The gain and the bias are handed over beside the tokens."""

import torch


def normalise(x, gain, bias, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    power = centred.square().mean(dim=-1, keepdim=True)
    return gain * centred * torch.rsqrt(power + eps) + bias


PATIENT = normalise
FACTS = {"eps": 1e-5}
INPUTS = {"x": "b n 7", "gain": "7", "bias": "7"}
