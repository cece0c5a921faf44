"""Two einsums, heads before tokens; True in the mask allows."""

import math

import torch


def attention(q, k, v, mask=None):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return torch.einsum("bhij,bhjd->bhid", weights, v)


PATIENT = attention
FACTS = {"layout": "BHND", "mask": "keep", "empty_row": "nan"}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m e",
    "mask?": "keep b 1 n m",
}
