"""Upper triangles are what comes later; equal to 0 is what may be seen."""

import numpy as np
import torch


def subsequent_mask(size):
    attn_shape = (1, size, size)
    later = np.triu(np.ones(attn_shape), k=1).astype("uint8")
    return torch.from_numpy(later) == 0


PATIENT = subsequent_mask
FACTS = {"mask": "keep", "alignment": "last", "arguments": 1}
INPUTS = {"size": "int n"}
