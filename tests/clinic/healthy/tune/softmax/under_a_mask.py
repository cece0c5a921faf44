"""A softmax with a mask; rows that see nothing become zeros."""

import torch


def masked_softmax(scores, mask=None):
    if mask is None:
        return torch.softmax(scores, dim=-1)
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)


PATIENT = masked_softmax
FACTS = {"mask": "keep", "empty_row": "zeros"}
INPUTS = {"scores": "b n m", "mask?": "keep b n m"}
