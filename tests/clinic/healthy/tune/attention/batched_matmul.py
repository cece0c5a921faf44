"""Heads are a part of the batch; the mask is added."""

import math

import torch


def attention(q, k, v, attn_mask=None):
    _, _, width = q.shape
    scores = torch.bmm(q / math.sqrt(width), k.transpose(-2, -1))
    if attn_mask is not None:
        scores = scores + attn_mask
    weights = torch.softmax(scores, dim=-1)
    return torch.bmm(weights, v)


PATIENT = attention
FACTS = {"layout": "BND", "mask": "add", "empty_row": "nan"}
INPUTS = {"q": "b n d", "k": "b m d", "v": "b m e", "attn_mask?": "add b n m"}
