"""One head after the other."""

import math

import torch


def one_head(q, k, v):
    scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[2])
    return torch.softmax(scores, dim=2) @ v


def attend(q, k, v):
    outputs = []
    for head in range(q.shape[1]):
        outputs.append(one_head(q[:, head], k[:, head], v[:, head]))
    return torch.stack(outputs, dim=1)


PATIENT = attend
FACTS = {"layout": "BHND"}
INPUTS = {"q": "b h n d", "k": "b h m d", "v": "b h m e"}
