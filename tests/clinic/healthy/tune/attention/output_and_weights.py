"""The tutorial's function: it returns its weights as well."""

import math

import torch
import torch.nn.functional as F


def attention(query, key, value, mask=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = F.softmax(scores, dim=-1)
    return torch.matmul(p_attn, value), p_attn


PATIENT = attention
FACTS = {
    "layout": "BHND",
    "mask": "keep",
    "empty_row": "average",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "query": "b h n d",
    "key": "b h m d",
    "value": "b h m e",
    "mask?": "keep b 1 n m",
}
