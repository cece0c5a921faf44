"""As it was done of old: a triangle on its other side, filled twice."""

import torch


def square_subsequent_mask(sz, device="cpu"):
    """0.0 where a position may look, -inf where it may not; to be added."""
    upper = torch.triu(torch.ones((sz, sz), device=device)) == 1
    mask = upper.transpose(0, 1).float()
    mask = mask.masked_fill(mask == 0, float("-inf"))
    return mask.masked_fill(mask == 1, 0.0)


PATIENT = square_subsequent_mask
FACTS = {"mask": "add", "alignment": "last", "arguments": 1}
INPUTS = {"sz": "int n"}
