"""Places are counted: a running sum of ones, looked up and added."""

import torch
import torch.nn.functional as F

generator = torch.Generator().manual_seed(3)
WPE = torch.randn(18, 6, generator=generator) * 0.02


def embed_places(h, wpe=WPE):
    """h is (time, batch, width), as recurrent layers have it."""
    ones = torch.ones(h.shape[:2], dtype=torch.long, device=h.device)
    ids = ones.cumsum(dim=0) - 1
    return torch.add(h, F.embedding(ids, wpe.to(h.dtype)))


PATIENT = embed_places
FACTS = {"table": WPE, "layout": "NBD"}
INPUTS = {"h": "n b 6"}
SIZES = {"n": (1, 18)}
