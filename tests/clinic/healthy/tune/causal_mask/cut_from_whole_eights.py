"""A quant's: made for whole blocks of eight, kept, and cut to the days."""

from enum import Enum
from functools import lru_cache

import torch

BLOCK = 8


class Peek(Enum):
    """Which days may be looked at, as numbers to add."""

    PAST = 1
    STRICT = 0


@lru_cache(maxsize=16)
def _blocks(blocks, peek):
    size = blocks * BLOCK
    table = torch.full((size, size), float("-inf"))
    return table.triu(diagonal=peek.value)


def no_lookahead(*, days, peek=Peek.PAST):
    """(days, days), 0 for the past and today, minus infinity for later."""
    whole = _blocks(-(-days // BLOCK), peek)
    return whole[:days, :days].clone()


PATIENT = no_lookahead
FACTS = {
    "mask": "add",
    "alignment": "last",
    "arguments": 1,
    "dtypes": ("float32",),
}
INPUTS = {"days": "int n"}
