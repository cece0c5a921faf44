"""Attention that is a method of a block: of queries, keys and values.

It is asked as a layer is whose maps are ours, as the block's own lie in what
it makes of its input all at once.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks.recording import BATCH, N_K, N, is_text
from selfattn.doctor.kinds.layer.parts import HEADS, number
from selfattn.doctor.kinds.layer.reading import attends
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

Call = Callable[..., Any]


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


def found(
    block: nn.Module, call: Call, wide: tuple[int, int | None], facts: Facts
) -> Iterator[tuple[str, nn.Module]]:
    """Each method that attends, as a layer, by its name.

    One that is called with heads apart is a function, and no layer.
    """
    n_heads = facts.get("n_heads") or number(block, HEADS)
    for name, _ in inspect.getmembers(type(block), inspect.isfunction):
        method = getattr(block, name)
        if not attends(method) or not takes_three(method):
            continue
        for width in widths(block, name, call, wide):
            yield name, Shell(method, width, n_heads)
            break


def takes_three(method: Call) -> bool:
    """Whether a method can be called with three arguments alone."""
    try:
        inspect.signature(method).bind(None, None, None)
    except TypeError:
        return False
    return True


def widths(
    block: nn.Module, name: str, call: Call, wide: tuple[int, int | None]
) -> list[int]:
    """How wide its queries are, if they are as wide as its keys and values."""
    method, seen = getattr(block, name), []

    def noted(*given: Any, **named: Any) -> Any:
        bound = inspect.signature(method).bind(*given, **named)
        seen.append([*bound.arguments.values()][:3])
        return method(*given, **named)

    texts = [
        numbers(BATCH, n, d, seed=n)
        for n, d in zip((N, N_K), wide, strict=True)
        if d is not None
    ]
    vars(block)[name] = noted
    try:
        trial_calls.outcome(call, *texts)
    finally:
        del vars(block)[name]
    return [
        three[0].shape[-1]
        for three in seen
        if all(map(is_text, three))
        and len({one.shape[-1] for one in three}) == 1
    ]
