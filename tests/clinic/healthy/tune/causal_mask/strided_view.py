"""One row of ones and zeros; each row of the mask is a view of it."""

import torch


def toeplitz_mask(rows, columns):
    """True where query i, of the last `rows`, may not look."""
    line = torch.ones(rows + columns, dtype=torch.bool)
    line[:columns] = False
    # row i begins rows - 1 - i to the right, so that it ends with i more zeros
    view = line.as_strided((rows, columns), (1, 1))
    return view.flip(0).contiguous()


PATIENT = toeplitz_mask
FACTS = {"mask": "block", "alignment": "last", "arguments": 2}
INPUTS = {"rows": "int n", "columns": "int n+3"}
OTHER_INPUTS = [{"rows": "int n", "columns": "int n"}]
