"""What is hidden is not felt, not even where it is NaN or infinity.

A weight of zero is no protection from those: 0 · NaN is NaN. So a padded
token that holds garbage would spoil every query of its sequence, though none
may see it.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.checks import is_transformed

Attention = Callable[[Tensor, Tensor, Tensor], Any]


def unfelt(
    attend: Attention, q: Tensor, k: Tensor, v: Tensor, *, rows: int | None = 1
) -> Any:
    """Attend; and where something came out spoilt, without what is hidden.

    That is looked for in the output, which costs next to nothing. What shows
    that it is hidden from a query is the mechanism itself: between queries
    and keys that are all alike, a key that is seen has a weight.

    Args:
        attend: the mechanism on q, k and v, with whatever it hides; it
            returns an output, (..., n_q, d_v), alone or before others.
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
        rows: how many of the last rows show whether any is spoilt; None for
            all. One will do where the last query's sum is over all keys,
            those with a weight of zero among them.

    Returns:
        What the mechanism returns. Queries that see a spoilt key get what
        it gives, and pass nothing back; the others get what they would get
        if that key were not there. On a GPU, which would have to wait for
        the answer, and while PyTorch traces or transforms, nothing is looked
        for, and what is hidden is felt as it is in PyTorch's own attention.
    """
    result = attend(q, k, v)
    output = result[0] if isinstance(result, tuple) else result
    if not is_spoilt(output if rows is None else output[..., -rows:, :]):
        return result
    # A number so large that its square overflows can spoil a sum, too.
    largest = torch.finfo(k.dtype).max ** 0.49
    sound = (k.abs() < largest).all(-1) & v.isfinite().all(-1)
    spoilt = ~sound[..., None]  # (..., n_k, 1)
    if not spoilt.any():
        return result
    clean = attend(q, k.masked_fill(spoilt, 0), v.masked_fill(spoilt, 0))
    alike = torch.ones_like(q), torch.ones_like(k)
    found = attend(*alike, spoilt.to(v.dtype))
    felt = (found[0] if isinstance(result, tuple) else found) != 0
    if not isinstance(result, tuple):
        return torch.where(felt, result.detach(), clean)
    return tuple(
        torch.where(felt if x.ndim == felt.ndim else felt[..., 0], x, y)
        for x, y in zip(map(Tensor.detach, result), clean, strict=True)
    )


def average(weights: Tensor, v: Tensor) -> Tensor:
    """Weights @ v, in which a value that weighs nothing counts nothing.

    Args:
        weights: (..., n_q, n_k).
        v: values, (..., n_k, d_v).

    >>> v = torch.tensor([[1.0], [torch.nan]])
    >>> average(torch.tensor([[1.0, 0.0]]), v)
    tensor([[1.]])
    """
    output = weights @ v
    if not is_spoilt(output[..., -1:, :]):
        return output
    spoilt = ~v.isfinite().all(dim=-1, keepdim=True)
    clean = weights @ v.masked_fill(spoilt, 0)
    felt = (weights != 0).to(v) @ spoilt.to(v) != 0
    return torch.where(felt, output.detach(), clean)


def can_look(x: Tensor) -> bool:
    """Whether numbers are at hand: not traced, nor transformed, nor on a GPU,
    which one would have to wait for.
    """
    if type(x) is not Tensor or x.device.type != "cpu":
        return False
    return not (torch.compiler.is_compiling() or is_transformed())


def is_spoilt(x: Tensor) -> bool:
    """Whether a number is NaN or infinite, where one can look."""
    if not can_look(x):
        return False
    wide = torch.float32 if x.element_size() < 4 else None
    return not math.isfinite(x.detach().sum(dtype=wide).item())
