"""The pairs of indices below the diagonal are listed, and set."""

import torch


def autoregressive_mask(seq_len: int, device=None) -> torch.Tensor:
    rows, cols = torch.tril_indices(seq_len, seq_len, device=device)
    allowed = torch.zeros((seq_len, seq_len), dtype=torch.bool, device=device)
    allowed[rows, cols] = True
    return allowed


PATIENT = autoregressive_mask
FACTS = {"mask": "keep", "alignment": "last", "arguments": 1}
INPUTS = {"seq_len": "int n"}
