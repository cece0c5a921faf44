"""A mask for each length lies in a table; lengths look theirs up."""

import torch
import torch.nn.functional as F


def lengths_to_mask(lengths, max_length):
    """Ones for tokens, as whole numbers."""
    triangle = torch.ones(max_length, max_length, dtype=torch.long).tril()
    triangle = F.pad(triangle, (0, 0, 1, 0))  # a row for empty texts, too
    return triangle[lengths]


PATIENT = lengths_to_mask
FACTS = {"mask": "ones", "axes": "BN", "of": "lengths", "arguments": 2}
INPUTS = {"lengths": "lengths b n", "max_length": "int n"}
