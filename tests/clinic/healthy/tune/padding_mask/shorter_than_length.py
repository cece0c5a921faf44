"""Positions below the length are real."""

import torch


def length_mask(lengths, max_len):
    position = torch.arange(max_len, device=lengths.device)
    return position[None, :] < lengths[:, None]


PATIENT = length_mask
FACTS = {"mask": "keep", "axes": "BN", "of": "lengths", "arguments": 2}
INPUTS = {"lengths": "lengths b n", "max_len": "int n"}
