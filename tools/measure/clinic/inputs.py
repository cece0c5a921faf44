"""Inputs drawn by what a patient promises, each described in a few words.

    "b n h d"      numbers of this shape; 2*d, n+3 and plain numbers may stand
                   for letters
    "keep b n m"   a mask, True where one may look; "block" says the opposite
                   and "add" is 0 there, and minus infinity elsewhere
    "real b m"     the same for padding at the end; "padding" the opposite
    "future n n"   True above the diagonal
    "bias h n m"   numbers to add to scores
    "lengths b n"  b numbers from 1 to n
    "ids b n"      texts of numbers, padded with zeros
    "int n+3"      a number; "range n" so many of them in a row
    "true"         a flag
    "=q"           the very tensor that q is

An argument whose name ends in "?" may be left out.
"""

import math
import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor

USUAL = {
    "b": (1, 3),
    "h": (1, 4),
    "g": (1, 3),
    "n": (1, 7),
    "m": (1, 8),
    "d": (2, 5),
    "e": (1, 6),
    "s": (0, 9),
}


class Chance(NamedTuple):
    """What inputs are drawn with."""

    draw: Random
    torch: torch.Generator
    dtype: torch.dtype
    loud: float
    empty: bool  # whether a row of a mask may be empty

    def rand(self, *shape: int) -> Tensor:
        """Numbers between 0 and 1."""
        return torch.rand(shape, generator=self.torch)

    def randn(self, *shape: int) -> Tensor:
        """Numbers around 0."""
        kind = torch.float64
        return torch.randn(shape, generator=self.torch, dtype=kind)


def chance(
    seed: int, dtype: torch.dtype, loud: float, empty: bool = False
) -> Chance:
    """The same numbers for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    return Chance(Random(seed), generator, dtype, loud, empty)


def drawn(
    described: Mapping[str, str],
    ranges: Mapping[str, tuple[int, int]],
    by: Chance,
    optional: float = 0.6,
) -> dict[str, Any]:
    """Arguments by their names, those to be left out left out."""
    ranges = {**USUAL, **ranges}
    sizes = {letter: by.draw.randint(*ranges[letter]) for letter in ranges}
    made: dict[str, Any] = {}
    for name, words in described.items():
        left_out = name.endswith("?") and by.draw.random() >= optional
        if not left_out:
            made[name.rstrip("?")] = one(words, sizes, made, by)
    return made


def one(
    words: str, sizes: Mapping[str, int], made: Mapping[str, Any], by: Chance
) -> Any:
    """What a description stands for."""
    if words.startswith("="):
        return made[words[1:]]
    first, *rest = words.split()
    if first in SORTS:
        return SORTS[first]([number(word, sizes) for word in rest], by)
    shape = [number(word, sizes) for word in words.split()]
    return (by.randn(*shape) * by.loud).to(by.dtype)


def number(word: str, sizes: Mapping[str, int]) -> int:
    """A size: a number, or a letter, multiplied or with something added.

    >>> number("2*d", {"d": 5}), number("n+3", {"n": 4}), number("-1", {})
    (10, 7, -1)
    """
    if re.fullmatch(r"-?\d+", word):
        return int(word)
    times, letter, more = re.fullmatch(
        r"(?:(\d+)\*)?([a-z])(?:\+(\d+))?", word
    ).groups()
    return int(times or 1) * sizes[letter] + int(more or 0)


def keep(shape: list[int], by: Chance) -> Tensor:
    """A mask without an empty row, unless there may be one."""
    mask = by.rand(*shape) < 0.6
    last = shape[-1]
    sure = torch.randint(last, (*shape[:-1], 1), generator=by.torch)
    mask.scatter_(-1, sure, True)
    if by.empty:
        mask.view(-1, last)[0] = False
    return mask


def added(shape: list[int], by: Chance) -> Tensor:
    """A mask as numbers to add."""
    table = torch.zeros(shape, dtype=by.dtype)
    return table.masked_fill(~keep(shape, by), -math.inf)


def lengths(shape: list[int], by: Chance) -> Tensor:
    """Lengths of so many texts, at most the last number."""
    texts, longest = shape
    return torch.randint(1, longest + 1, (texts,), generator=by.torch)


def real(shape: list[int], by: Chance) -> Tensor:
    """Which tokens are no padding."""
    return torch.arange(shape[-1]) < lengths(shape, by)[:, None]


def ids(shape: list[int], by: Chance) -> Tensor:
    """Texts of numbers, padded with zeros."""
    words = torch.randint(1, 9, shape, generator=by.torch)
    return words * real(shape, by)


def row(shape: list[int], by: Chance) -> Tensor:
    """Numbers in a row, from somewhere on."""
    start = by.draw.randint(0, 6)
    return torch.arange(start, start + shape[0])


SORTS: dict[str, Callable[[list[int], Chance], Any]] = {
    "keep": keep,
    "block": lambda shape, by: ~keep(shape, by),
    "add": added,
    "real": real,
    "padding": lambda shape, by: ~real(shape, by),
    "future": lambda shape, by: torch.ones(shape).triu(1).bool(),
    "bias": lambda shape, by: by.randn(*shape).to(by.dtype),
    "lengths": lengths,
    "ids": ids,
    "int": lambda shape, by: shape[0],
    "range": row,
    "true": lambda shape, by: True,
}
