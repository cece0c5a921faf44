"""A triangle of ones, as booleans."""

import torch


def causal_mask(n):
    return torch.tril(torch.ones(n, n)).bool()


PATIENT = causal_mask
FACTS = {"mask": "keep", "alignment": "last", "arguments": 1}
INPUTS = {"n": "int n"}
