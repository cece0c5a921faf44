"""One head of one text, mapped over heads and texts."""

import torch


def single(q, k, v):
    scores = q @ k.T * q.shape[-1] ** -0.5
    return torch.softmax(scores, -1) @ v


attend = torch.vmap(torch.vmap(single))


def attention(q, k, v):
    return attend(q, k, v)


PATIENT = attention
FACTS = {"layout": "BHND"}
INPUTS = {"q": "b h n d", "k": "b h m d", "v": "b h m e"}
