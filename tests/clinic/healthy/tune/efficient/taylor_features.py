"""The exponential's first three terms as features; linear in the keys."""

import math

import torch
from torch import nn


class TaylorExp(nn.Module):
    """Features with phi(q) . phi(k) = 1 + s + s^2 / 2, s = q . k / sqrt(d)"""

    def forward(self, x):
        x = x / x.shape[-1] ** 0.25
        x2 = (x.unsqueeze(-1) * x.unsqueeze(-2)).flatten(start_dim=-2)
        one = torch.ones_like(x[..., :1])
        return torch.cat([one, x, x2 / math.sqrt(2)], dim=-1)


feature_map = TaylorExp()


def based_attention(query, key, value):
    query, key = feature_map(query), feature_map(key)
    state = torch.matmul(key.transpose(-1, -2), value)
    denom = torch.matmul(query, key.sum(dim=-2).unsqueeze(-1))
    return torch.matmul(query, state) / denom


def expanded(x):
    d = x.shape[-1]
    columns = [torch.ones_like(x[..., 0])]
    columns += [x[..., a] / d**0.25 for a in range(d)]
    columns += [
        x[..., a] * x[..., b] / (2 * d) ** 0.5
        for a in range(d)
        for b in range(d)
    ]
    return torch.stack(columns, dim=-1)


PATIENT = based_attention
FACTS = {"layout": "BHND", "kernel": expanded}
INPUTS = {"query": "b h n d", "key": "b h m d", "value": "b h m e"}
LOUDEST = 4
