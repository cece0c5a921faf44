"""Scores less the logarithm of their sum, over an axis of choice."""

import torch


def softmax(scores, dim):
    return torch.exp(scores - torch.logsumexp(scores, dim=dim, keepdim=True))


PATIENT = softmax
FACTS = {"axis": "dim", "empty_row": "nan"}
INPUTS = {"scores": "b n m", "dim": "int -1"}
LOUDEST = 1000
