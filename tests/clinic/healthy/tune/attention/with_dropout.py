"""Weights are dropped in training, and only then."""

import math

import torch.nn.functional as F


def attention(q, k, v, mask=None, dropout_p=0.0, training=False):
    d_head = q.shape[-1]
    logits = q.matmul(k.transpose(-1, -2)).div(math.sqrt(d_head))
    if mask is not None:
        logits = logits.masked_fill(mask.eq(False), float("-inf"))
    weights = logits.softmax(-1)
    weights = F.dropout(weights, p=dropout_p, training=training)
    return weights.matmul(v)


PATIENT = attention
FACTS = {
    "layout": "any",
    "mask": "keep",
    "empty_row": "nan",
    "dropout": "dropout_p",
}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m e",
    "mask?": "keep b h n m",
}
