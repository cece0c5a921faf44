"""A table to be added: minus infinity where it is forbidden to look."""

import torch


def generate_square_subsequent_mask(sz):
    table = torch.full((sz, sz), float("-inf"))
    return torch.triu(table, diagonal=1)


PATIENT = generate_square_subsequent_mask
FACTS = {"mask": "add", "alignment": "last", "arguments": 1}
INPUTS = {"sz": "int n"}
