"""Rows of ones, as long as the texts, padded like the texts themselves."""

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence


def ones_like_texts(lengths, total):
    rows = [torch.ones(int(n), dtype=torch.long) for n in lengths]
    mask = pad_sequence(rows, batch_first=True, padding_value=0)
    return F.pad(mask, (0, total - mask.shape[1]))


PATIENT = ones_like_texts
FACTS = {"mask": "ones", "axes": "BN", "of": "lengths", "arguments": 2}
INPUTS = {"lengths": "lengths b n", "total": "int n"}
