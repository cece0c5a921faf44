"""Sums that the type is too narrow for: they vanish, or overflow.

Weights that are no softmax's are not measured against the largest of a row.
Of long queries and keys all of them may be too small to divide by, and a
query that sees keys gets nothing; in float64 it gets its average.
"""

import math

import torch
from torch import Tensor

from selfattn.spoilt import can_look, is_spoilt


def is_coarse(
    output: Tensor, causal: bool, q: Tensor, k: Tensor, v: Tensor | None = None
) -> bool:
    """Whether sums were too small for the type, or too large: in float64,
    which is not asked, they may be neither.

    Args:
        output: of queries, or their weights, (..., n_q, any number).
        causal: whether the last query sits on the last key.
        q: queries, (..., n_q, d), of which it was made.
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v); none, if the output is weights.
    """
    if output.dtype == torch.float64:
        return False
    if is_spoilt(output) and overflowed(output, causal, q, k, v):
        return True
    return loses_a_row(output, causal, k, v)


def overflowed(
    output: Tensor, causal: bool, q: Tensor, k: Tensor, v: Tensor | None
) -> bool:
    """Whether a number is spoilt by sums: by nothing that its query was given,
    nor sees. What is in another sequence, or hidden, does not excuse it.

    Minus infinity in a query or a key is a feature of zero.

    >>> q, v = torch.ones(2, 1, 1), torch.tensor([[[torch.nan]], [[1.0]]])
    >>> overflowed(v, False, q, q, v), overflowed(v.flip(0), False, q, q, v)
    (False, True)
    """
    n_q, n_k = output.shape[-2], k.shape[-2]
    start = max(0, n_q - n_k) if causal else 0
    spoilt = ~output[..., start:, :].isfinite()
    asking, keys = (~(x < math.inf).all(-1, keepdim=True) for x in (q, k))
    told = keys if v is None else keys | ~v.isfinite()
    told = seen_by_any(told, causal, spoilt.shape[-2])
    return bool((spoilt & ~asking[..., start:, :] & ~told).any())


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
    seeing = output[..., max(0, n_q - n_k) if causal else 0 :, :]
    if n_k == 0 or 0 in seeing.shape:
        return False
    empty = seeing[..., 0] == 0  # few are, which is soon seen
    if not empty.any():
        return False
    empty = (seeing == 0).all(dim=-1)
    if v is None:
        return bool(empty.any())
    told = (v != 0).any(dim=-1, keepdim=True)  # (..., n_k, 1)
    told = seen_by_any(told, causal, seeing.shape[-2])
    return bool((empty & told[..., 0]).any())
