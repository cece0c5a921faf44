"""Ported from an array library: the scale is a must, key heads are few."""

from functools import partial

import torch


def scaled_dot_product_attention(queries, keys, values, *, scale, mask=None):
    B, n_q_heads, L, D = queries.shape
    n_kv_heads = keys.shape[-3]
    n_repeats = n_q_heads // n_kv_heads

    queries = queries * scale
    if n_repeats > 1:
        queries = queries.reshape(B, n_kv_heads, n_repeats, L, D)
        keys = torch.unsqueeze(keys, -3)
        values = torch.unsqueeze(values, -3)
        if mask is not None:
            mask = torch.unsqueeze(mask, -3)

    scores = torch.matmul(queries, torch.swapaxes(keys, -1, -2))
    if mask is not None:
        scores = torch.where(mask, scores, float("-inf"))
    scores = torch.softmax(scores, dim=-1)
    out = torch.matmul(scores, values)
    if n_repeats > 1:
        out = out.reshape(B, n_q_heads, L, -1)
    return out


PATIENT = partial(scaled_dot_product_attention, scale=0.3)
FACTS = {
    "layout": "BHND",
    "grouped": True,
    "scale": 0.3,
    "mask": "keep",
    "mask_axes": "B1NN",
    "empty_row": "nan",
}
INPUTS = {
    "queries": "b 3*g n d",
    "keys": "b g m d",
    "values": "b g m e",
    "mask?": "keep b 1 n m",
}
