"""A linguist's: what is hidden comes first, and tokens first comes out."""

from typing import NamedTuple

import torch


class Reading(NamedTuple):
    """What a word becomes, and what it was read from."""

    meaning: torch.Tensor
    shares: torch.Tensor


def attend(hidden, word, context, meaning, sharpness=1.0, transparent=True):
    """Shares of the context for each word; `hidden` is True where it is."""
    affinity = word @ context.swapaxes(-1, -2)
    affinity = affinity * (sharpness / word.shape[-1] ** 0.5)
    if hidden is not None:
        affinity = affinity.masked_fill(hidden, float("-inf"))
    # a shift changes no share, so nothing need be learnt through it
    top = affinity.detach().amax(-1, keepdim=True)
    top = top.masked_fill(top.isinf(), 0)
    odds = (affinity - top).exp()
    total = odds.sum(-1, keepdim=True)
    shares = odds / (total + (total == 0))
    result = torch.movedim(shares @ meaning, 1, 2)
    return Reading(result, shares if transparent else shares.detach())


PATIENT = attend
FACTS = {
    "layout": "BHND to BNHD",
    "causal": False,
    "mask": "block",
    "mask_axes": "any",
    "empty_row": "zeros",
    "names": {
        "q": "word",
        "k": "context",
        "v": "meaning",
        "mask": "hidden",
    },
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "word": "b h n d",
    "context": "b h m d",
    "meaning": "b h m e",
    "hidden": "block b h n m",
}
OTHER_INPUTS = [
    {
        "word": "b h n d",
        "context": "b h m d",
        "meaning": "b h m e",
        "hidden": "block n m",
    },
    {
        "word": "b h n d",
        "context": "b h m d",
        "meaning": "b h m e",
        "hidden": "block b 1 n m",
    },
]
