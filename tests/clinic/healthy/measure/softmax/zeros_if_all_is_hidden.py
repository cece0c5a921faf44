"""What is hidden holds minus infinity already; a row of nothing is zeros."""

import torch
import torch.nn.functional as F


def safe_softmax(logits, dim=-1):
    probs = F.softmax(logits, dim=dim)
    hidden = torch.isneginf(logits)
    empty = torch.all(hidden, dim=dim, keepdim=True)
    return probs.masked_fill(empty, 0.0)


PATIENT = safe_softmax
FACTS = {"axis": "dim", "empty_row": "zeros"}
INPUTS = {"logits": "b n m", "dim": "int -1"}
LOUDEST = 1000
