"""The axes of queries, keys, values and masks: in others' order, and back."""

from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercise import UnusableError

LAYOUTS = {
    "any": "any axes, tokens, features",
    "BHND": "batch, heads, tokens, features",
    "BNHD": "batch, tokens, heads, features",
    "BND": "batch, tokens, features",
    "NBD": "tokens, batch, features",
    "BHDN": "batch, heads, features, tokens",
    "BDN": "batch, features, tokens",
    "N D": "tokens, features: one sequence at a time",
    "BHND to BNHD": "heads first, and in the output tokens first",
    "BHND to BND": "heads first, and in the output side by side",
    "BNHD to BND": "tokens first, and in the output heads side by side",
}
TO = " to "  # between the axes of what goes in and those of what comes out
FOUR = ("BHND", "BNHD", "BHDN")  # with an axis for heads
THREE = ("BND", "NBD", "BDN")
TURNED = ("BHDN", "BDN")  # tokens behind the features
INNER = {  # in what axes is computed what goes in and out in others
    **dict.fromkeys(FOUR, "BHND"),
    "NBD": "BND",
    "BDN": "BND",
    "N D": "any",
}
MASKS = {
    "any": "any that broadcast to the scores",
    "all": "all those of the scores",
    "BNN": "batch, queries, keys",
    "B1NN": "batch, 1, queries, keys",
    "NN": "queries, keys",
    "BN": "batch, keys",
}


def laid_out(x: Tensor, layout: str) -> Tensor:
    """A tensor (…, n, d) in another layout.

    Raises:
        UnusableError: if it has axes for which there is no place.
    """
    layout = layout.partition(TO)[0]
    if layout == "any":
        return x
    if layout == "N D":
        if x.ndim != 2:
            raise UnusableError("it takes one sequence at a time")
        return x
    if layout in THREE:
        three = x.reshape(-1, *x.shape[-2:]) if x.ndim != 3 else x
        return turned(three, layout)
    four = x if x.ndim > 3 else x[:, None] if x.ndim == 3 else x[None, None]
    return turned(four, layout)


def turned(x: Tensor, layout: str) -> Tensor:
    """Axes of tokens and features where a layout has them, and back again."""
    axes = {"NBD": (0, 1), "BNHD": (1, 2), "BDN": (1, 2), "BHDN": (2, 3)}
    fits = x.ndim == (4 if layout in FOUR else 3)
    return x.transpose(*axes[layout]) if layout in axes and fits else x


def laid_back(value: Any, layout: str, front: torch.Size) -> object:
    """An output as (…, n, d) again; of an output with weights, the output."""
    if isinstance(value, tuple) and 1 < len(value) < 4:
        value = value[0]
    before, _, layout = layout.rpartition(TO)
    if layout in ("any", "N D") or not isinstance(value, Tensor):
        return value
    if before and layout == "BND":
        value = parted(value, front[-1] if len(front) > 1 else 1)
    value = turned(value, layout)
    if value.ndim < 3:
        return value
    try:
        return value.reshape(*front, *value.shape[-2:])
    except RuntimeError:
        return value  # of a wrong size, which shall be seen


def parted(value: Tensor, n_heads: int) -> Tensor:
    """An output whose heads are side by side, with an axis for them."""
    if value.ndim != 3 or value.shape[-1] % n_heads:
        return value  # of a wrong size, which shall be seen
    return value.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def comes_out(shape: torch.Size, asked: tuple[int, ...]) -> str:
    """The axes in which an output has what was asked, "" if in none.

    >>> comes_out(torch.Size([2, 5, 12]), (2, 3, 5, 4))
    'BND'
    """
    b, h, n, d = asked
    known = {asked: "BHND", (b, n, h, d): "BNHD", (b, n, h * d): "BND"}
    return known.get(tuple(shape), "")


def mask_laid_out(mask: Tensor, q: Tensor, n_k: int, facts: Any) -> Tensor:
    """A mask that broadcasts to (…, n_q, n_k), with the axes of its own.

    Raises:
        UnusableError: if these cannot hold what it says.
    """
    layout, axes = facts["layout"].partition(TO)[0], facts["mask_axes"]
    if axes == "any" and layout in ("any", "N D"):
        return mask
    if axes == "any" and layout in FOUR:
        return mask if mask.ndim < 3 else in_four(mask, q.ndim)
    full = mask.expand(*q.shape[:-2], q.shape[-2], n_k)
    if axes == "all" and layout not in THREE:
        return full if layout == "any" else in_four(full, q.ndim)
    if layout in ("any", *FOUR):  # all heads have one mask
        full = in_four(full, q.ndim)[:, 0]
    return in_three(full.reshape(-1, *full.shape[-2:]), axes)


def in_four(mask: Tensor, ndim: int) -> Tensor:
    """A mask with axes for the batch and for the heads."""
    if ndim == 2:
        return mask[None, None]
    return mask[:, None] if mask.ndim == 3 else mask


def in_three(full: Tensor, axes: str) -> Tensor:
    """A mask (batch, n_q, n_k) with fewer axes, if they hold it all."""
    if axes == "NN":
        if not bool((full == full[:1]).all()):
            raise UnusableError("its mask is one for the whole batch")
        return full[0]
    if axes == "BN":
        if not bool((full == full[:, :1]).all()):
            raise UnusableError("its mask is one for all queries")
        return full[:, 0]
    return full[:, None] if axes == "B1NN" else full
