"""A table to be added to scores with four axes."""

import torch


def extended_mask(lengths, n):
    real = torch.arange(n).expand(len(lengths), n) < lengths.unsqueeze(-1)
    mask = torch.zeros(len(lengths), 1, 1, n)
    return mask.masked_fill(~real[:, None, None, :], float("-inf"))


PATIENT = extended_mask
FACTS = {"mask": "add", "axes": "B11N", "of": "lengths", "arguments": 2}
INPUTS = {"lengths": "lengths b n", "n": "int n"}
