"""Sums that the type is too narrow for: they vanish, or overflow.

Weights that are no softmax's are not measured against the largest of a row.
Of long queries and keys all of them may be too small to divide by, and a
query that sees keys gets nothing; in float64 it gets its average.
"""

import math

import torch
from torch import Tensor

from selfattn.infinite import heaviest, largest_number
from selfattn.spoilt import can_look, is_spoilt

LOW = -60.0  # below it, elu + 1 times a small value loses digits in float32
# How large a feature may be, of one that is that small, and not be felt where
# weights come to 1e-31: so many times less, the more are added up.
HIGH = 1e8


def is_faint(q: Tensor, k: Tensor) -> bool:
    """Whether features of elu + 1 may be so small that float32 has them with
    few digits, though others are so large that they weigh something.

    >>> far, near = torch.tensor([[-100.0]]), torch.tensor([[1.0]])
    >>> is_faint(near, far), is_faint(1e14 * near, far)
    (False, True)
    """
    if q.dtype == torch.float64 or not (q.numel() and k.numel()):
        return False
    if not can_look(q):
        return False
    high = HIGH / (k.shape[-2] * k.shape[-1])
    least_q, most_q = ends(q)
    if least_q > LOW and most_q < high:  # as a rule
        return False
    least_k, most_k = ends(k)
    low, large = (least_q < LOW, least_k < LOW), (most_k > high, most_q > high)
    return any(map(all, zip(low, large, strict=True)))


def ends(x: Tensor) -> tuple[float, float]:
    """The least and the largest number; what is none counts as zero."""
    least, most = (end.item() for end in x.detach().aminmax())
    if math.isfinite(most - least):
        return least, most
    least, most = x.detach().nan_to_num(0, 0, 0).aminmax()
    return least.item(), most.item()


def is_coarse(
    output: Tensor, causal: bool, q: Tensor, k: Tensor, v: Tensor | None = None
) -> bool:
    """Whether sums were too small for the type, or too large: in float64,
    which is not asked, they may be neither.

    Args:
        output: of queries, or their weights, (..., n_q, any number).
        causal: whether the last query sits on the last key.
        q: queries, (..., n_q, d), of which it was made, or their features.
        k: keys, (..., n_k, d), likewise.
        v: values, (..., n_k, d_v); none, if the output is weights.
    """
    if output.dtype == torch.float64:
        return False
    # Over an infinite sum of weights there is nothing, or NaN.
    empty = loses_a_row(output, causal, k)
    if (empty or is_spoilt(output)) and may_overflow(q, k, v):
        return True
    return empty and loses_a_row(output, causal, k, v)


def may_overflow(q: Tensor, k: Tensor, v: Tensor | None) -> bool:
    """Whether numbers are so large that float32 may have none for their sums.
    That one beside them is spoilt is no excuse: not all see it, and without
    it the others are summed up once more.

    >>> x, far = torch.tensor([[torch.nan], [1.0]]), torch.full((2, 1), 3e38)
    >>> may_overflow(x, x, x), may_overflow(x, x, far)
    (False, True)
    """
    most = k.shape[-2] * heaviest(q, k)
    if v is not None:
        most *= max(1.0, largest_number(v))
    return most > torch.finfo(torch.float32).max


def seen_by_any(keys: Tensor, causal: bool, n: int) -> Tensor:
    """Whether the last n queries see any of some keys, (..., n_k, any)."""
    if causal:
        return keys.cumsum(dim=-2)[..., -n:, :] > 0
    return keys.any(dim=-2, keepdim=True)


def loses_a_row(
    output: Tensor, causal: bool, k: Tensor, v: Tensor | None = None
) -> bool:
    """Whether a query that sees a key got nothing, for all its weights were
    too small for the type: among long queries and keys, some are. Of keys
    whose values are zero, nothing is all there is to get.

    >>> output, k = torch.zeros(1, 1), torch.ones(2, 1)
    >>> loses_a_row(output, False, k), loses_a_row(output, False, k, 0 * k)
    (True, False)
    """
    if output.dtype == torch.float64 or not can_look(output):
        return False
    n_q, n_k = output.shape[-2], k.shape[-2]
    start = max(0, n_q - n_k) if causal else 0
    seeing = output[..., start:, :] if start else output
    if n_k == 0 or 0 in seeing.shape:
        return False
    if seeing[..., 0].all():  # few are nothing, which is soon seen
        return False
    empty = (seeing == 0).all(dim=-1)
    if v is None:
        return bool(empty.any())
    told = (v != 0).any(dim=-1, keepdim=True)  # (..., n_k, 1)
    told = seen_by_any(told, causal, seeing.shape[-2])
    return bool((empty & told[..., 0]).any())
