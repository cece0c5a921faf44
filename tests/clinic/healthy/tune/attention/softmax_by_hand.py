"""Exponentials and their sum; an empty row gives zeros."""

import math

import torch


def attend(q, k, v, blocked=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if blocked is not None:
        scores = scores.masked_fill(blocked, -math.inf)
    top = scores.amax(dim=-1, keepdim=True).clamp(min=-1e30)
    powers = torch.exp(scores - top)
    total = powers.sum(dim=-1, keepdim=True)
    return (powers / total.clamp(min=1e-30)) @ v


PATIENT = attend
FACTS = {
    "layout": "any",
    "mask": "block",
    "names": {"mask": "blocked"},
    "empty_row": "zeros",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m e",
    "blocked?": "block b 1 n m",
}
