"""Numbers of words: which there are, and what they say."""

from collections.abc import Sequence

import torch
from torch import Tensor


def said(tokens: Tensor, words: Sequence[str]) -> list[str]:
    """What each token says, of all that can be said.

    Raises:
        ValueError: if one says nothing.
    """
    if tokens.is_meta:
        raise ValueError("tokens must be numbers, but on meta there are none")
    check_below("tokens", tokens, len(words))
    return [words[i] for i in tokens.tolist()]


def check_below(name: str, x: Tensor, n: int) -> None:
    """Raise unless all are numbers from 0 on, less than n."""
    if x.is_meta or not x.numel():
        return
    least, most = int(x.min()), int(x.max())
    if least < 0 or most >= n:
        raise ValueError(
            f"{name} must be numbers from 0 to {n - 1}, but they go from "
            f"{least} to {most}"
        )


def numbers(places: list[int]) -> Tensor:
    """Token numbers; none are whole numbers, too.

    >>> numbers([]).dtype
    torch.int64
    """
    return torch.tensor(places, dtype=torch.int64)
