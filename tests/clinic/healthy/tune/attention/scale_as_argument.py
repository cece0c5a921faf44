"""A scale of the caller's, or one over the root of the width."""

import math

import torch


def attend(q, k, v, attn_mask=None, scale=None):
    factor = 1 / math.sqrt(q.size(-1)) if scale is None else scale
    bias = torch.zeros(q.size(-2), k.size(-2), dtype=q.dtype)
    if attn_mask is not None:
        bias = bias.masked_fill(attn_mask.logical_not(), -math.inf)
    weight = q @ k.transpose(-2, -1) * factor
    weight += bias
    return torch.softmax(weight, dim=-1) @ v


PATIENT = attend
FACTS = {
    "layout": "any",
    "mask": "keep",
    "mask_axes": "NN",
    "empty_row": "nan",
}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m e",
    "attn_mask?": "keep n m",
}
