"""One line of a terse library: ones of i by j, cut above the diagonal."""

import torch


def exists(val):
    return val is not None


def create_causal_mask(i, j, device=None):
    kwargs = {"device": device} if exists(device) else {}
    return torch.ones((i, j), dtype=torch.bool, **kwargs).triu(j - i + 1)


PATIENT = create_causal_mask
FACTS = {"mask": "block", "alignment": "last", "arguments": 2}
INPUTS = {"i": "int n", "j": "int n+3"}
OTHER_INPUTS = [{"i": "int n", "j": "int n"}]
