"""A speech toolkit's way: lengths in a list or tensor, True for padding."""

import torch


def make_pad_mask(lengths, maxlen=None):
    if not isinstance(lengths, list):
        lengths = lengths.tolist()
    if maxlen is None:
        maxlen = max(lengths)

    mask = torch.zeros(len(lengths), int(maxlen), dtype=torch.bool)
    for row, length in zip(mask, lengths, strict=True):
        row[int(length) :] = True
    return mask


PATIENT = make_pad_mask
FACTS = {"mask": "block", "axes": "BN", "of": "lengths", "arguments": 2}
INPUTS = {"lengths": "lengths b n", "maxlen": "int n"}
