"""Unscaled scores and a bias that is added, as in T5."""

import torch
import torch.nn.functional as F


def attend(query, key, value, position_bias=None):
    scores = torch.matmul(query, key.transpose(3, 2))
    if position_bias is not None:
        scores = scores + position_bias
    weights = F.softmax(scores, dim=-1).type_as(scores)
    return torch.matmul(weights, value)


PATIENT = attend
FACTS = {
    "layout": "BHND",
    "scale": 1.0,
    "mask": "add",
    "names": {"mask": "position_bias"},
}
INPUTS = {
    "query": "b h n d",
    "key": "b h m d",
    "value": "b h m e",
    "position_bias?": "bias 1 h n m",
}
