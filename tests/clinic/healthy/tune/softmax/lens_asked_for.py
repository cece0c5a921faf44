"""Beyond a valid length scores become -1e6; lengths are one a text."""

import torch
from torch import nn


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return nn.functional.softmax(X, dim=-1)
    shape = X.shape
    lens = torch.repeat_interleave(valid_lens, shape[1])
    flat = X.reshape(-1, shape[-1])
    keep = torch.arange(shape[-1])[None, :] < lens[:, None]
    flat = flat.masked_fill(~keep, -1e6)
    return nn.functional.softmax(flat.reshape(shape), dim=-1)


PATIENT = masked_softmax
FACTS = {"mask": "lengths", "empty_row": "average"}
INPUTS = {"X": "b n m", "valid_lens": "lengths b m"}
