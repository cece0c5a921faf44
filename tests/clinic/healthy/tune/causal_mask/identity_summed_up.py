"""An identity, summed up row after row; axes of one for batch and heads."""

import torch


def lower_triangular(T):
    running = torch.eye(T, dtype=torch.int32).cumsum(dim=0)
    return running.reshape(1, 1, T, T)


PATIENT = lower_triangular
FACTS = {"mask": "ones", "alignment": "last", "arguments": 1}
INPUTS = {"T": "int n"}
