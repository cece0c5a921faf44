"""A one at the end of each text, summed up; before it there are zeros."""

import torch


def sequence_mask(sequence_lengths, maximum_length):
    ends = torch.zeros(len(sequence_lengths), maximum_length + 1).long()
    ends.scatter_(1, sequence_lengths.unsqueeze(1), 1)
    return ends.cumsum(dim=1)[:, :-1].eq(0)


PATIENT = sequence_mask
FACTS = {"mask": "keep", "axes": "BN", "of": "lengths", "arguments": 2}
INPUTS = {
    "sequence_lengths": "lengths b n",
    "maximum_length": "int n",
}
