"""What a cache keeps: its tensors, after each chunk of a text."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from selfattn.doctor.kinds.cached_decoder.probes import EXACT
from selfattn.doctor.patient import Patient

CHUNKS = (2, 1, 2)


class Kept(NamedTuple):
    """One tensor of a cache, after each chunk, and its axis of tokens."""

    after: list[Tensor]
    axis: int | None  # None: its size is always the same


def leaves(cache: Any) -> Iterator[Tensor]:
    """The tensors of numbers in a cache, wherever they are in it."""
    if isinstance(cache, Tensor):
        if cache.is_floating_point() and cache.ndim > 1:
            yield cache
    elif isinstance(cache, dict):
        for one in cache.values():
            yield from leaves(one)
    elif isinstance(cache, list | tuple):
        for one in cache:
            yield from leaves(one)
    elif hasattr(cache, "__dict__"):
        yield from leaves(vars(cache))


def history(patient: Patient, x: Tensor, chunks: Any = CHUNKS) -> list[Kept]:
    """Each tensor of the cache, after every chunk of a text."""
    cache, states = None, []
    for chunk in x.split(chunks, dim=1):
        _, cache = patient(chunk, cache)  # type: ignore[misc]
        states.append([leaf.clone() for leaf in leaves(cache)])
    if len({len(state) for state in states}) > 1:
        return []
    kept = [filled(list(one)) for one in zip(*states, strict=True)]
    return [Kept(one, axis_of(one)) for one in kept]


def filled(states: list[Tensor]) -> list[Tensor]:
    """A tensor without the room in it that is still empty, if there is any.

    Room that was made in advance is zeros from some place on, along one axis.
    """
    sizes = {state.shape for state in states}
    if len(sizes) > 1 or not any(bool((s == 0).any()) for s in states):
        return states
    for axis in range(1, states[0].ndim - 1):
        ends = [end_of(state, axis) for state in states]
        if max(ends) < states[0].shape[axis]:
            pairs = zip(states, ends, strict=True)
            return [s.narrow(axis, 0, end) for s, end in pairs]
    return states


def end_of(state: Tensor, axis: int) -> int:
    """Up to where a tensor holds anything along an axis."""
    rows = state.transpose(0, axis).flatten(1).any(dim=-1)
    return int(rows.nonzero().max()) + 1 if bool(rows.any()) else 0


def axis_of(states: Any) -> int | None:
    """The axis along which a tensor has another length now and then."""
    shapes = [state.shape for state in states]
    if len({len(shape) for shape in shapes}) > 1:
        return None
    odd = [
        a for a, of in enumerate(zip(*shapes, strict=True)) if len({*of}) > 1
    ]
    if odd:
        return odd[0]
    size = shapes[0]
    same = [a for a in range(1, len(size)) if size[a] in (1, 2)]
    return same[0] if same else None


def close(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are equal, but for the order of sums."""
    return torch.allclose(a, b, rtol=EXACT, atol=EXACT)
