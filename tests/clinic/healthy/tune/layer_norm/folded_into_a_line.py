"""Gain, mean and deviation are folded into one product and one sum."""

import torch


def moments(x, axes):
    mean = torch.mean(x, dim=axes, keepdim=True)
    variance = torch.mean(torch.square(x - mean), dim=axes, keepdim=True)
    return mean, variance


def layer_normalization(inputs, gamma=None, beta=None, axis=-1, epsilon=1e-3):
    mean, variance = moments(inputs, axis)
    inv = torch.rsqrt(variance + epsilon)
    if gamma is not None:
        inv = inv * gamma
    res = -mean * inv
    if beta is not None:
        res = res + beta
    return inputs * inv + res  # one multiplication and one addition


PATIENT = layer_normalization
FACTS = {"eps": 1e-3, "dtypes": ("float64", "float32")}
INPUTS = {"inputs": "b n d", "gamma": "d", "beta": "d"}
