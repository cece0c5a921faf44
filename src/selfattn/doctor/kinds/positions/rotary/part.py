"""Which of its features a function turns: the first few, or all."""

from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.kinds.positions.rotary.arguments import fresh
from selfattn.doctor.kinds.positions.rotary.trying import (
    Found,
    sample,
    tried,
)
from selfattn.doctor.patient import Facts

WIDE = 16  # features to look at, of who takes any number of them
MOST = 130  # which are tried no more


def part_turned(thing: Any, told: Facts, found: Found) -> Facts:
    """The part that it turns, and of how many, if what is behind stays.

    GPT-J, GPT-NeoX and many others turn a part of each head on purpose. Who
    turns the first half may have meant the whole, and so has to say it.
    """
    if "part" in told:
        return {"width": width_of(thing, told, found)}
    d = found.width or WIDE
    r = turned_of(thing, told, found, d)
    return {} if r is None or 2 * r == d else {"part": r / d, "width": d}


def width_of(thing: Any, told: Facts, found: Found) -> int:
    """The first number of features of which it turns the part that it says.

    That with which it was called may be one at which nothing is left.
    """
    if "width" in told:
        return int(told["width"])
    parts = {d: turned_at(d, told["part"]) for d in range(4, MOST, 2)}
    pairs = [d for d, r in parts.items() if r and r % 2 == 0]
    so = (d for d in pairs if turned_of(thing, told, found, d) == parts[d])
    return next(so, found.width or WIDE)


def turned_at(width: int, part: float) -> int:
    """How many features are turned of so many."""
    return int(width * part)


def is_half_turned(thing: Any, told: Facts, found: Found) -> bool:
    """Whether it turns the first half of its features, and no other."""
    d = found.width or WIDE
    return turned_of(thing, told, found, d) == d // 2


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
