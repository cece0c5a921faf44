"""Keys meet values first: elu + 1 in the place of the exponential."""

import torch
import torch.nn.functional as F


def feature_map(x):
    return F.elu(x) + 1


def linear_attention(q, k, v):
    q, k = feature_map(q), feature_map(k)
    kv = torch.einsum("bhnd,bhne->bhde", k, v)
    norm = torch.einsum("bhnd,bhd->bhn", q, k.sum(dim=2))
    return torch.einsum("bhnd,bhde->bhne", q, kv) / norm.unsqueeze(-1)


PATIENT = linear_attention
FACTS = {"layout": "BHND", "kernel": lambda x: F.elu(x) + 1}
INPUTS = {"q": "b h n d", "k": "b h m d", "v": "b h m e"}
LOUDEST = 4
