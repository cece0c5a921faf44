"""A loop over the texts; ones for the real tokens."""

import torch


def padding_mask(lengths, n):
    mask = torch.zeros(len(lengths), 1, n)
    for i, length in enumerate(lengths.tolist()):
        mask[i, 0, :length] = 1
    return mask


PATIENT = padding_mask
FACTS = {"mask": "ones", "axes": "B1N", "of": "lengths", "arguments": 2}
INPUTS = {"lengths": "lengths b n", "n": "int n"}
