"""Keys and values of their own for each distance."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds.layer.learnt.left_over import (
    NOTHING,
    Steps,
    letters,
    numbers_left,
)
from selfattn.doctor.kinds.layer.parts import Projections

Places = Callable[[int, int, int], Tensor]  # of n_q, n_k, rows
FEWEST = 3  # rows: one behind, itself, one ahead


def apart(n_q: int, n_k: int) -> Tensor:
    """How far each key is ahead of each query, (n_q, n_k)."""
    own = torch.arange(n_q)[:, None] + n_k - n_q
    return torch.arange(n_k) - own


def around(n_q: int, n_k: int, rows: int) -> Tensor:
    """The row of each distance, clipped; its own place is in the middle."""
    far = rows // 2
    return apart(n_q, n_k).clamp(-far, far) + far


def around_behind(n_q: int, n_k: int, rows: int) -> Tensor:
    """The same, counted to the past."""
    return rows - 1 - around(n_q, n_k, rows)


def at_the_end(n_q: int, n_k: int, rows: int) -> Tensor:
    """The row of each distance to the past; its own place is the last."""
    return (rows - 1 + apart(n_q, n_k)).clamp(0, rows - 1)


def at_the_start(n_q: int, n_k: int, rows: int) -> Tensor:
    """The row of each distance to the past; its own place is the first."""
    return (-apart(n_q, n_k)).clamp(0, rows - 1)


def tables(module: nn.Module, parts: Projections) -> Sequence[Steps]:
    """The ways in which a table of distances may meet queries, and weights."""
    d = parts.q.W.shape[-1] // parts.n_heads
    left = [
        (name, x)
        for name, x in numbers_left(module, parts)
        if x.ndim == 2 and x.shape[-1] == d and len(x) >= FEWEST
    ]
    values = [x for name, x in left if "v" in letters(name)]
    keys = [x for name, x in left if "v" not in letters(name)]
    if len(keys) > 1 or len(values) > 1 or not keys:
        return NOTHING
    made = []
    for place in (around, around_behind, at_the_end, at_the_start):
        steps: Steps = {"compare": with_keys(keys[0], place)}
        if values:
            steps["mix"] = with_values(values[0], place)
        made.append(steps)
    return made


def of_each_head(
    module: nn.Module, parts: Projections
) -> Callable[[int, int, int], Tensor] | None:
    """What a parameter adds to scores that has, by distance, one for a head.

    Which row is of which pair of places a table of whole numbers may tell.
    """
    h, maps = parts.n_heads, {name for name, _ in module.named_modules()}
    held = [
        x if x.shape[-1] == h else x.mT
        for name, x in numbers_left(module, parts)
        if x.ndim == 2 and h in x.shape and max(x.shape) >= FEWEST
        if name.removesuffix(".weight") not in maps  # which takes x, say
    ]
    if len(held) != 1:
        return None
    table, index = held[0], index_in(module, len(held[0]))

    def bias(heads: int, n_q: int, n_k: int) -> Tensor:
        if index is None:
            rows = around(n_q, n_k, len(table))
        else:
            rows = index[n_k - n_q : n_k, :n_k]
        return table[rows].movedim(-1, 0)

    return bias


def index_in(module: nn.Module, rows: int) -> Tensor | None:
    """The row of each pair of places, if a buffer tells it."""
    known = set(range(rows))
    for x in module.buffers():
        square = x.ndim == 2 and x.shape[0] == x.shape[1]
        if (
            square
            and x.dtype == torch.int64
            and {*x.flatten().tolist()} <= known
        ):
            return x
    return None


def with_keys(
    table: Tensor, place: Places
) -> Callable[[Tensor, Tensor], Tensor]:
    """Every query with every key, and with that of their distance."""

    def compare(q: Tensor, k: Tensor) -> Tensor:
        rows = table[place(q.shape[-2], k.shape[-2], len(table))].to(q)
        return q @ k.mT + torch.einsum("bhqd,qkd->bhqk", q, rows)

    return compare


def with_values(
    table: Tensor, place: Places
) -> Callable[[Tensor, Tensor], Tensor]:
    """The values, and those of their distances, by their weights."""

    def mix(weights: Tensor, v: Tensor) -> Tensor:
        n_q, n_k = weights.shape[-2:]
        rows = table[place(n_q, n_k, len(table))].to(v)
        return weights @ v + torch.einsum("bhqk,qkd->bhqd", weights, rows)

    return mix
