"""New tokens after a past that all of them may see."""

import torch


def build_mask(n_new, n_total):
    mask = torch.ones(n_new, n_total, dtype=torch.bool)
    return torch.tril(mask, diagonal=n_total - n_new)


PATIENT = build_mask
FACTS = {"mask": "keep", "alignment": "last", "arguments": 2}
INPUTS = {"n_new": "int n", "n_total": "int n+3"}
OTHER_INPUTS = [{"n_new": "int n", "n_total": "int n"}]
