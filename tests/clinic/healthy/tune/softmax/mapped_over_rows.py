"""Written for one row; `vmap` does it for all rows of any table."""

import torch
from torch.func import vmap


def of_row(row):
    top = row.detach().max()
    numerators = torch.exp(row - top)
    return numerators / numerators.sum()


def softmax(a, axis=-1):
    rows = a.movedim(axis, -1)
    f = of_row
    for _ in range(rows.dim() - 1):
        f = vmap(f)
    return f(rows).movedim(-1, axis)


PATIENT = softmax
FACTS = {"axis": "axis", "empty_row": "nan"}
INPUTS = {"a": "b n m", "axis": "int -1"}
LOUDEST = 1000
