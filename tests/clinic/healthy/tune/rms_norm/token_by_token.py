"""Homework: a loop over the tokens, each divided by its own number."""

import torch


def rmsnorm(x, gain, eps=1e-8):
    tokens = x.reshape(-1, x.shape[-1])
    normed = []
    for token in tokens:
        d = len(token)
        ms = torch.dot(token, token) / d
        normed.append(token / (ms + eps) ** 0.5)
    return torch.stack(normed).reshape(x.shape).mul(gain)


PATIENT = rmsnorm
FACTS = {"eps": 1e-8, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n d", "gain": "d"}
