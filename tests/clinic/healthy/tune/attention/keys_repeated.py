"""Fewer heads of keys and values; each is repeated for its group."""

import torch


def grouped_attention(q, k, v):
    groups = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(groups, dim=1)
    v = v.repeat_interleave(groups, dim=1)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ v


PATIENT = grouped_attention
FACTS = {"layout": "BHND", "grouped": True}
INPUTS = {"q": "b 2*g n d", "k": "b g m d", "v": "b g m e"}
