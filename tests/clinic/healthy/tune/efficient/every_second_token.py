"""Dilated: even tokens among themselves, odd ones too, nobody ahead."""

import math

import torch

DILATION = 2


def dense_causal(q, k, v):
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))
    upper = torch.ones(scores.shape[-2:], device=q.device).triu(diagonal=1)
    scores = scores.masked_fill(upper > 0, -torch.inf)
    return torch.matmul(scores.softmax(-1), v)


def dilated_attention(query, key, value, r=DILATION):
    batch, length, heads, _ = query.shape
    out = value.new_zeros(batch, length, heads, value.size(-1))
    for offset in range(min(r, length)):
        picked = slice(offset, None, r)
        part = dense_causal(
            query[:, picked].transpose(1, 2),
            key[:, picked].transpose(1, 2),
            value[:, picked].transpose(1, 2),
        )
        out[:, picked] = part.transpose(1, 2)
    return out


def same_parity(n_q, n_k):
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    return (j <= i) & (i % 2 == j % 2)


PATIENT = dilated_attention
FACTS = {
    "layout": "BNHD",
    "causal": True,
    "table": same_parity,
    "square": True,
}
INPUTS = {"query": "b n h d", "key": "b n h d", "value": "b n h e"}
SIZES = {"n": (1, 12)}
