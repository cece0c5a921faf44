"""For export without reductions: maxima and sums as rounds of pairs."""

import torch
import torch.nn.functional as F


def halve(x, join, neutral):
    """Join entry 2i with entry 2i + 1; an odd one meets a neutral one."""
    if x.shape[-1] % 2:
        x = F.pad(x, (0, 1), value=neutral)
    return join(x[..., 0::2], x[..., 1::2])


def tournament(x, join, neutral):
    while x.shape[-1] > 1:
        x = halve(x, join, neutral)
    return x


def softmax(input, axis=-1, log_sum=True, upcast=None):
    """Softmax over an axis, and the logarithms of its sums."""
    given = input.dtype
    x = input.to(upcast or given).movedim(axis, -1)
    top = tournament(x.detach(), torch.maximum, -torch.inf)
    e = torch.exp(x - top)
    total = tournament(e, torch.add, 0.0)
    y = (e / total).movedim(-1, axis).to(given)
    lse = (total.log() + top).squeeze(-1)
    return (y, lse) if log_sum else (y, None)


PATIENT = softmax
FACTS = {
    "axis": "axis",
    "empty_row": "nan",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"input": "b h n m"}
OTHER_INPUTS = [{"input": "n m"}, {"input": "m"}]
