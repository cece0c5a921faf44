"""The largest score of a row is taken off first."""

import torch


def softmax(x):
    x = x - x.max(dim=-1, keepdim=True).values
    e = torch.exp(x)
    return e / e.sum(dim=-1, keepdim=True)


PATIENT = softmax
FACTS = {"empty_row": "nan"}
INPUTS = {"x": "b n m"}
LOUDEST = 1000
