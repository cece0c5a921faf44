"""The sign of a word's number is its mask; low numbers where it is zero."""

import torch

PADDING_NUM = -(2.0**32) + 1


def padding_bias(word_ids):
    """(N, T_k) numbers of words; returns (N, 1, 1, T_k), to be added."""
    key_masks = torch.sign(torch.abs(word_ids)).float()
    key_masks = key_masks[:, None, None, :]
    paddings = torch.ones_like(key_masks) * PADDING_NUM
    zeros = torch.zeros_like(key_masks)
    return torch.where(torch.eq(key_masks, 0), paddings, zeros)


PATIENT = padding_bias
FACTS = {"mask": "add", "axes": "B11N", "of": "tokens", "arguments": 1}
INPUTS = {"word_ids": "ids b n"}
