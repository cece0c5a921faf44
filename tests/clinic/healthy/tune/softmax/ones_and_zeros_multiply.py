"""The mask multiplies powers, and nothing is divided by zero."""

import torch


def masked_softmax(vector, mask):
    seen = mask.to(vector.dtype)
    # the largest of what is seen; 0 where there is nothing to see
    top = vector.masked_fill(~mask, float("-inf")).amax(-1, keepdim=True)
    top = top.nan_to_num(neginf=0.0)
    powers = torch.exp((vector - top).masked_fill(~mask, 0.0)) * seen
    total = powers.sum(dim=-1, keepdim=True)
    total = total + (total == 0).to(total.dtype)
    return powers / total


PATIENT = masked_softmax
FACTS = {"mask": "keep", "empty_row": "zeros"}
INPUTS = {"vector": "b n m", "mask": "keep b n m"}
