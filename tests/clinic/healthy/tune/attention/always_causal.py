"""Causal without being asked, as in a model that writes."""

import math

import torch
import torch.nn.functional as F


def causal_attention(q, k, v):
    T = q.size(-2)
    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    mask = torch.tril(torch.ones(T, T, device=q.device))
    att = att.masked_fill(mask == 0, float("-inf"))
    att = F.softmax(att, dim=-1)
    return att @ v


PATIENT = causal_attention
FACTS = {"layout": "any", "causal": True}
INPUTS = {"q": "b h n d", "k": "b h n d", "v": "b h n e"}
