"""The last number of a running sum, in logarithms, is what rows share."""

import torch
from torch import nn


class RunningSoftmax(nn.Module):
    """For masks as transformers have them: True may be looked at."""

    def forward(self, att, allow=None):
        if allow is not None:
            att = torch.where(allow, att, torch.tensor(-torch.inf).to(att))
        total = torch.logcumsumexp(att, dim=-1)[..., -1:]
        # a row that is all hidden has the total -inf; it shall be zeros
        total = total.masked_fill(total == -torch.inf, 0.0)
        return torch.exp(att - total)


PATIENT = RunningSoftmax()
FACTS = {
    "mask": "keep",
    "empty_row": "zeros",
    "dtypes": ("float64", "float32"),
}
INPUTS = {"att": "b n m", "allow?": "keep b n m"}
