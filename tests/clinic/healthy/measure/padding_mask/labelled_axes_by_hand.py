"""For looking inside models: each axis is named, and padding is True."""

import torch
from torch import Tensor

AXES = "batch head query key"


def expand_to(x: Tensor, pattern: str) -> Tensor:
    """'batch key' has two names; all that are missing become ones."""
    present = pattern.split()
    sizes = iter(x.shape)
    shape = [next(sizes) if a in present else 1 for a in AXES.split()]
    return x.contiguous().view(shape)


def padding_pattern(tokens: Tensor) -> Tensor:
    """[batch, head, query, key]: True where a key is the padding token."""
    padding = torch.zeros_like(tokens)
    is_padding = torch.eq(tokens.flatten(), padding.flatten())
    return expand_to(is_padding.view_as(tokens), "batch key")


PATIENT = padding_pattern
FACTS = {
    "mask": "block",
    "axes": "B11N",
    "of": "tokens",
    "pad": 0,
    "arguments": 1,
    "dtypes": ("float64", "float32", "bfloat16", "float16"),
}
INPUTS = {"tokens": "ids b n"}
