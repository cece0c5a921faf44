"""The logarithm of 1 is 0 and that of 0 is minus infinity: a mask to add."""

import torch


def pad_bias(ids, pad_id=0):
    """ids: (batch, length) -> (batch, 1, 1, length)"""
    there = torch.ne(ids, pad_id)
    return torch.log(there.float()).reshape(ids.shape[0], 1, 1, -1)


PATIENT = pad_bias
FACTS = {"mask": "add", "axes": "B11N", "of": "tokens", "arguments": 1}
INPUTS = {"ids": "ids b n"}
