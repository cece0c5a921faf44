"""What a mask says: in other conventions than ours, and back in ours."""

from typing import Any

import torch
from torch import Tensor

MEANINGS = {
    "keep": "True allows",
    "block": "True forbids",
    "add": "it is added to the scores",
}
OF_A_MAKER = {  # what a function that makes masks may return besides
    **MEANINGS,
    "ones": "1 allows, 0 forbids",
    "zeros": "0 allows, 1 forbids",
}


def as_meant(mask: Tensor, meaning: str, dtype: torch.dtype) -> Tensor:
    """A mask that is True where one may look, as others would say it."""
    if meaning == "keep":
        return mask
    if meaning == "block":
        return ~mask
    added = torch.zeros(mask.shape, dtype=dtype)
    return added.masked_fill(~mask, -torch.inf)


def as_ours(mask: Any, meaning: str) -> object:
    """A mask in another convention as ours; as it is, if it is not in it."""
    if not isinstance(mask, Tensor) or meaning == "keep":
        return mask
    if meaning == "block":
        return ~mask if mask.dtype == torch.bool else mask
    low, high = {"add": (None, 0), "ones": (0, 1), "zeros": (1, 0)}[meaning]
    if mask.dtype == torch.bool:
        return mask.float()  # of the wrong type, which shall be seen
    allowed = mask == high
    forbidden = mask <= -1000 if low is None else mask == low
    return allowed if bool((allowed | forbidden).all()) else mask
