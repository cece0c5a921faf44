"""Attention that is a method of a block: of queries, keys and values.

It is asked as a layer is whose maps are ours, as the block's own lie in what
it makes of its input all at once.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks.recording import (
    BATCH,
    N_K,
    N,
    is_text,
    parts_called,
)
from selfattn.doctor.kinds.layer.parts import HEADS, number
from selfattn.doctor.kinds.layer.reading import attends
from selfattn.doctor.patient import Facts, parameters
from selfattn.doctor.probes import numbers

Call = Callable[..., Any]
MOVES = 1e-5
THREE = 3  # queries, keys and values


class Shell(nn.Module):
    """A layer of attention whose scores and sums are a block's method."""

    def __init__(self, method: Call, width: int, n_heads: int | None):
        """Make the maps, for queries, keys and values."""
        super().__init__()
        self.method, self.n_heads = method, n_heads
        self.q, self.k, self.v = (
            nn.Linear(width, width, bias=False) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Any:
        """What each token is told by the others."""
        return self.method(self.q(x), self.k(x), self.v(x))


class Masked(Shell):
    """One whose method takes a mask, too, behind the values."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Any:
        """What each token is told by those that it may see."""
        return self.method(self.q(x), self.k(x), self.v(x), mask)


def take_numbers(layer: nn.Module, block: nn.Module) -> None:
    """Give a layer a block's own numbers, such as how many heads it has."""
    for name, value in vars(block).items():
        if isinstance(value, int | float) and name != "training":
            setattr(layer, name, value)


class Whole(nn.Module):
    """A block's method as a layer, with the maps that it calls."""

    def __init__(self, block: nn.Module, name: str, called: set[nn.Module]):
        """Hold the block, which is no part, and of its parts those."""
        super().__init__()
        self.held, self.named = (block,), name
        take_numbers(self, block)
        for attribute, part in block.named_children():
            if part in called:
                setattr(self, attribute, part)

    def forward(self, x: Tensor) -> Any:
        """What each token is told by the others, in the method's words."""
        return getattr(self.held[0], self.named)(x)


class Across(Whole):
    """A block's method that looks at another text, as a layer."""

    def forward(self, x: Tensor, context: Tensor | None = None) -> Any:
        """What each token is told by the other text."""
        return getattr(self.held[0], self.named)(x, context)


def found(
    block: nn.Module, call: Call, wide: tuple[int, int | None], facts: Facts
) -> Iterator[tuple[str, nn.Module]]:
    """Each method that attends, as a layer, by its name.

    One that is called with heads apart is a function, and no layer.
    """
    n_heads = facts.get("n_heads") or number(block, HEADS)
    for name, _ in inspect.getmembers(type(block), inspect.isfunction):
        method = getattr(block, name)
        if not (attends(method) and takes(method, THREE)):
            yield from whole(block, name, call, wide)
            continue
        for width, handed in widths(block, name, call, wide):
            fourth = parameters(method)[THREE : THREE + 1]
            more = len(parameters(block)) > sum(d is not None for d in wide)
            # One that the block never hands on is not a mask of its own.
            masked = any("mask" in one for one in fourth) and (more or handed)
            yield name, (Masked if masked else Shell)(method, width, n_heads)
            break


def takes(method: Call, n: int) -> bool:
    """Whether a method can be called with so many arguments alone."""
    try:
        inspect.signature(method).bind(*[None] * n)
    except TypeError:
        return False
    return True


def whole(
    block: nn.Module, name: str, call: Call, wide: tuple[int, int | None]
) -> Iterator[tuple[str, nn.Module]]:
    """A method that is called with tokens alone, as a layer, maps and all.

    Who has parts of their own that attend is no layer, but holds one.
    """
    method = getattr(block, name)
    of_torch = method.__module__.partition(".")[0] == "torch"
    if name == "forward" or of_torch:
        return
    given = next(iter(noted(block, name, call, wide)), [])
    texts = [one for one in given if is_text(one)]
    if any(one is not None for one in given[len(texts) :]):
        return  # a mask that the block makes would be missed
    if not takes(method, len(texts)) or not mixes(method, texts):
        return
    called = {*parts_called(block.children(), method, *texts)}
    if all(not [*part.children()] for part in called):
        yield name, (Across if texts[1:] else Whole)(block, name, called)


def mixes(method: Call, texts: list[Tensor]) -> bool:
    """Whether a token that comes in last moves others that come out."""
    if not 1 <= len(texts) <= len(("x", "context")):
        return False
    *before, last = texts
    other = torch.cat((1 - last[:, :1], last[:, 1:]), dim=1)
    said = [trial_calls.outcome(method, *before, one) for one in (last, other)]
    if not all(map(is_text, said)):
        return False
    return bool((said[0] - said[1])[:, 1:].abs().max() > MOVES)


def widths(
    block: nn.Module, name: str, call: Call, wide: tuple[int, int | None]
) -> list[tuple[int, bool]]:
    """How wide its queries are, if they are as wide as its keys and values.

    And whether the block hands it something behind these.
    """
    return [
        (given[0].shape[-1], any(x is not None for x in given[THREE:]))
        for given in noted(block, name, call, wide)
        if len(given) >= THREE
        and all(map(is_text, given[:THREE]))
        and len({one.shape[-1] for one in given[:THREE]}) == 1
    ]


def noted(
    block: nn.Module, name: str, call: Call, wide: tuple[int, int | None]
) -> list[list[Any]]:
    """What a block hands to a method of its own, call by call."""
    method, seen = getattr(block, name), []

    def heard(*given: Any, **named: Any) -> Any:
        bound = inspect.signature(method).bind(*given, **named)
        seen.append([*bound.arguments.values()])
        return method(*given, **named)

    texts = [
        numbers(BATCH, n, d, seed=n)
        for n, d in zip((N, N_K), wide, strict=True)
        if d is not None
    ]
    vars(block)[name] = heard
    try:
        trial_calls.outcome(call, *texts)
    finally:
        del vars(block)[name]
    return seen
