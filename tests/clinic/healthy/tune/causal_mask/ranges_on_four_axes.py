"""One range, laid along two of four axes, is compared with itself."""

import torch


def get_causal_mask(n, device=None):
    r = torch.arange(n, device=device)
    i, j = r.view(1, 1, n, 1), r.view(1, 1, 1, n)
    return i < j


PATIENT = get_causal_mask
FACTS = {"mask": "block", "alignment": "last", "arguments": 1}
INPUTS = {"n": "int n"}
