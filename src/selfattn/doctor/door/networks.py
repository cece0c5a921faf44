"""Whether a module has a network: two maps, and between them no other token.

Maps that lead to another width and back are those of an attention, too, whose
heads together are wider than a token, or narrower. So the way is followed, in
the graph that autograd keeps, from the map that leads back.
"""

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.door.trying import tensor

# Behind what is so called, a number may be one of other tokens.
MIXES = re.compile("[Mm]m|Mv|Dot|Attention|[Ss]oftmax|[Ss]um")


def has_a_network(module: nn.Module, *given: Any) -> bool:
    """Whether one map leads to another width, and the next one back."""
    made = tensor(learning(module), *given)
    if made is None or made.grad_fn is None:
        return False
    return any(map(closes_a_network, steps_to(made.grad_fn)))


def learning(module: nn.Module) -> nn.Module:
    """A copy of which autograd keeps the graph, though it is not asked to."""
    mine = copy_of(module).requires_grad_(True)

    def begin(*_: Any) -> None:
        torch.set_grad_enabled(True)

    mine.register_forward_pre_hook(begin)
    return mine


def closes_a_network(step: Any) -> bool:
    """Whether a step is a map back, and a token is alone since it left.

    Where a gate is all that is alone, the rest comes from attention.
    """
    back = map_of(step)
    if back is None or back.shape[0] == back.shape[1]:
        return False
    before = [one for one in steps_to(step, alone=True) if one is not step]
    maps = [matrix for one in before if (matrix := map_of(one)) is not None]
    if any(mixes(one) for one in before if map_of(one) is None):
        return False
    return any(matrix.shape == back.shape[::-1] for matrix in maps)


def steps_to(last: Any, alone: bool = False) -> Iterator[Any]:
    """A step and those that lead to it; or no farther than to the maps."""
    seen, waiting = {last}, [last]
    while waiting:
        step = waiting.pop()
        yield step
        if alone and step is not last and map_of(step) is not None:
            continue
        for before, _ in step.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                waiting.append(before)


def mixes(step: Any) -> bool:
    """Whether a step makes a number of more than one."""
    return MIXES.search(step.name()) is not None


def map_of(step: Any) -> Tensor | None:
    """The matrix of a step that is a map."""
    for before, _ in step.next_functions:
        while before is not None and len(before.next_functions) == 1:
            ((before, _),) = before.next_functions
        matrix: Tensor | None = getattr(before, "variable", None)
        if matrix is not None and matrix.ndim == 2:
            return matrix
    return None
