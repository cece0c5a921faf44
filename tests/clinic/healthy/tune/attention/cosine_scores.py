"""Scores are cosines, made sharper by a temperature."""

import torch
import torch.nn.functional as F

TEMPERATURE = 10.0


def cosine_attention(q, k, v, mask=None):
    q = F.normalize(q, dim=-1)
    k = F.normalize(k, dim=-1)
    scores = torch.matmul(q, k.transpose(-2, -1)) * TEMPERATURE
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    return torch.matmul(scores.softmax(dim=-1), v)


PATIENT = cosine_attention
FACTS = {
    "layout": "BHND",
    "mask": "keep",
    "scores": "cosine",
    "scale": 10.0,
    "empty_row": "nan",
}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m e",
    "mask?": "keep b 1 n m",
}
