"""A loop over the rows fills what may be seen with ones."""

import torch


def look_ahead_mask(length):
    mask = torch.zeros(length, length)
    for i in range(length):
        mask[i, : i + 1] = 1
    return mask


PATIENT = look_ahead_mask
FACTS = {"mask": "ones", "alignment": "last", "arguments": 1}
INPUTS = {"length": "int n"}
