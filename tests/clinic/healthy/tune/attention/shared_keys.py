"""One head of keys and values for all query heads."""

import torch


def multi_query_attention(q, k, v):
    scores = torch.einsum("bhnd,bmd->bhnm", q, k) * q.shape[-1] ** -0.5
    weights = scores.softmax(dim=-1)
    return torch.einsum("bhnm,bmd->bhnd", weights, v)


PATIENT = multi_query_attention
FACTS = {"layout": "BHND", "grouped": "one", "shared": ("k", "v")}
INPUTS = {"q": "b h n d", "k": "b m d", "v": "b m e"}
