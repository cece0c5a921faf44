"""Welford's: feature after feature, mean and deviation are corrected."""

import torch


def layer_norm(inputs, gain, shift, epsilon=1e-6):
    mean = torch.zeros_like(inputs[..., 0])
    squares = torch.zeros_like(mean)
    for count, feature in enumerate(inputs.unbind(dim=-1), start=1):
        delta = feature - mean
        mean = mean + delta / count
        squares = squares + delta * (feature - mean)
    variance = squares / inputs.shape[-1]
    centred = inputs - mean.unsqueeze(-1)
    return shift + gain * centred / (variance + epsilon).sqrt().unsqueeze(-1)


PATIENT = layer_norm
FACTS = {"eps": 1e-6, "dtypes": ("float64", "float32")}
INPUTS = {"inputs": "b n d", "gain": "d", "shift": "d"}
