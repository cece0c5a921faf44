"""In few lines of NumPy: a table to add, very low for what is to come."""

import numpy as np
import torch


def causal_mask(n_seq, n_total=None):
    n_total = n_total or n_seq
    seen = np.tri(n_seq, n_total, k=n_total - n_seq, dtype=np.float32)
    mask = (1 - seen) * -1e10  # [n_seq, n_total]
    return torch.from_numpy(mask)


PATIENT = causal_mask
FACTS = {"mask": "add", "alignment": "last", "arguments": 2}
INPUTS = {"n_seq": "int n", "n_total": "int n+3"}
OTHER_INPUTS = [{"n_seq": "int n", "n_total": "int n"}]
