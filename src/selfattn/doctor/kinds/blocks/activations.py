"""What bends a network whose maps lie flat in a block: seen as it runs."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from selfattn.doctor.probes import numbers

Call = Callable[..., object]
KNOWN: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu of tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "squared relu": lambda x: torch.relu(x).square(),
    "softplus": F.softplus,
    "mish": F.mish,
    "nothing, where there is a second map": lambda x: x,
}
CLOSE = 1e-5


def passed_on(
    maps: Sequence[nn.Module], last: nn.Module, call: Call, d: int, n: int
) -> tuple[list[Tensor], Tensor] | None:
    """What some maps give, and what the last one takes, as a block runs.

    Args:
        maps: the first maps.
        last: the one behind them.
        call: calls the block, with n texts.
        d: how wide these are.
        n: how many it takes: x, and perhaps a context.
    """
    given: dict[int, Tensor] = {}
    taken: list[Tensor] = []
    hooks = [
        one.register_forward_hook(
            lambda module, args, y: given.__setitem__(id(module), y)
        )
        for one in maps
    ]
    hooks.append(
        last.register_forward_pre_hook(
            lambda module, args: taken.append(args[0])
        )
    )
    texts = (numbers(2, 5 + 2 * i, d, seed=i) for i in range(n))
    try:
        with torch.no_grad():
            call(*texts)
    except Exception:
        return None  # what a block cannot do is seen when it is asked
    finally:
        for hook in hooks:
            hook.remove()
    if len(given) < len(maps) or not taken:
        return None
    return [given[id(one)] for one in maps], taken[0]


def seen(
    maps: Sequence[nn.Module], last: nn.Module, call: Call, d: int, n: int
) -> tuple[tuple[int, ...], Callable[[Tensor], Tensor]] | None:
    """The order of one or two maps, and what bends the first of them.

    The second, if there is one, is what the first is multiplied by. None if
    it is none of those that are known. A single map that is not bent at all
    is held to one that is.
    """
    found = passed_on(maps, last, call, d, n)
    if found is None:
        return None
    given, taken = found
    if len(maps) == 1 and is_same(given[0], taken):
        return (0,), torch.relu  # it should be bent, in whatever way
    orders: Any = ((0,),) if len(maps) == 1 else ((0, 1), (1, 0))
    for order in orders:
        for bend in KNOWN.values():
            made = bend(given[order[0]])
            if len(order) > 1:
                made = made * given[order[1]]
            if is_same(made, taken):
                return order, bend
    return None


def is_same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are one, but for rounding."""
    return one.shape == other.shape and torch.allclose(
        one, other, rtol=CLOSE, atol=CLOSE
    )
