"""True above the diagonal: what may not be seen."""

import torch


def subsequent_mask(size):
    attn_shape = (size, size)
    return torch.triu(torch.ones(attn_shape), diagonal=1).type(torch.bool)


PATIENT = subsequent_mask
FACTS = {"mask": "block", "alignment": "last", "arguments": 1}
INPUTS = {"size": "int n"}
