"""A triangle by NumPy, with True for the keys that are to come."""

import numpy as np
import torch


def no_peek_mask(size, device="cpu"):
    np_mask = np.triu(np.ones((size, size)), k=1).astype("uint8")
    return torch.from_numpy(np_mask).to(device) > 0


PATIENT = no_peek_mask
FACTS = {"mask": "block", "alignment": "last", "arguments": 1}
INPUTS = {"size": "int n"}
