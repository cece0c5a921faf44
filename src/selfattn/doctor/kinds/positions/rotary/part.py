"""Which of its features a function turns: the first few, or all."""

from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.kinds.positions.rotary.arguments import fresh
from selfattn.doctor.kinds.positions.rotary.trying import (
    Found,
    sample,
    tried,
    widths_of,
)
from selfattn.doctor.patient import Facts


def features_turned(thing: Any, told: Facts, found: Found) -> int | None:
    """How many of its features it turns, if those behind stay as they are.

    GPT-J, GPT-NeoX and many others turn a part of each head on purpose. Who
    turns the first half may have meant the whole, and so has to say it.
    """
    for d in widths(thing, found):
        r = turned_of(thing, told, found, d)
        if r is not None and 2 * r != d:
            return r
    return None


def half_turned(thing: Any, told: Facts, found: Found) -> int | None:
    """How many features it turns, if that is half of them."""
    for d in widths(thing, found):
        if turned_of(thing, told, found, d) == d // 2:
            return d // 2
    return None


def widths(thing: Any, found: Found) -> list[int]:
    """At which widths it is looked at: its own, or a wide one and its own."""
    if found.width is not None:
        return [found.width]
    return [64, *widths_of(thing)[1:4]]


def turned_of(thing: Any, told: Facts, found: Found, d: int) -> int | None:
    """How many of d features are turned; None if it is all, or no part."""
    (layout, axes), way = next(iter(found.ways.items()))
    x = sample(layout, axes, d)
    output = tried(fresh(thing), way, {**told, "layout": layout}, x, 3)
    if output is None or output.shape != x.shape:
        return None
    moved = (output != x).flatten(0, -2).any(dim=0)
    r = int(moved.sum())
    first = bool(moved[:r].all())
    return r if first and 0 < r < d and r % 2 == 0 else None


def with_the_rest(x: Tensor, width: int) -> Tensor:
    """Features to turn, and behind them others, that are to stay."""
    rest = torch.arange(1, width - x.shape[-1] + 1).to(x.dtype) / 4
    return torch.cat((x, rest.expand(*x.shape[:-1], -1)), dim=-1)


def without_the_rest(output: Tensor, given: Tensor, r: int) -> Tensor:
    """What was turned; all of it if the rest is not what was given."""
    same = torch.equal(output[..., r:], given[..., r:].to(output.dtype))
    return output[..., :r] if same else output
