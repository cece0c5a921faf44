"""A matrix with its bias; and three, if one matrix holds them all."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

GATED = 4  # parts of equal width in one matrix


class Affine(NamedTuple):
    """x ↦ x W + b."""

    W: Tensor
    b: Tensor | None
    whole: tuple[Any, ...] = ()  # the parameters that it is made of

    def __call__(self, x: Tensor) -> Tensor:
        """Project some rows, in their own type."""
        y = x @ self.W.to(x.dtype)
        return y if self.b is None else y + self.b.to(x.dtype)


def queries_in(found: dict[str, Affine]) -> int:
    """How many features of one matrix are queries: those that go out.

    As many as keys, where nothing tells of fewer heads of keys.
    """
    whole, out = found["qkv"].W.shape[-1], found.get("out")
    if out is not None and whole == GATED * out.W.shape[0]:
        return out.W.shape[0]  # queries, keys, values, and a gate
    fewer = out is not None and whole < 3 * out.W.shape[0] < 3 * whole
    return out.W.shape[0] if fewer and out is not None else whole // 3


def unpacked(
    qkv: Affine, n_heads: int, packed: str, order: str, d_q: int
) -> dict[str, Affine]:
    """Three projections out of one matrix, of which ``d_q`` are queries."""
    d_head = d_q // n_heads
    gate = d_q if "z" in order else 0
    n_groups = (qkv.W.shape[-1] - d_q - gate) // 2 // max(d_head, 1)
    wide = {"q": d_q, "k": n_groups * d_head, "v": n_groups * d_head}
    wide |= {"z": gate} if gate else {}
    fits = sum(wide.values()) == qkv.W.shape[-1]
    if not (fits and 1 <= n_groups <= n_heads):
        return {}  # these heads do not divide it
    times = 1 if packed == "by part" else n_groups
    ends = list(accumulate(wide[part] // times for part in order))
    rows = torch.arange(qkv.W.shape[-1]).view(times, -1)
    made = {}
    for part, start, end in zip(order, [0, *ends], ends, strict=False):
        its = rows[:, start:end].flatten()
        b = None if qkv.b is None else qkv.b[its]
        made[part] = Affine(qkv.W[:, its], b, qkv.whole)
    return made


def keys_and_values(kv: Affine, d_head: int, packed: str) -> dict[str, Affine]:
    """The two in one: all keys first, or a head's keys and its values."""
    width = kv.W.shape[-1]
    size = width // 2 if packed != "by head" else d_head
    if not size or width % (2 * size):
        return {}
    rows = torch.arange(width).view(-1, 2, size)
    made = {}
    for part, its in (
        ("k", rows[:, 0].flatten()),
        ("v", rows[:, 1].flatten()),
    ):
        b = None if kv.b is None else kv.b[its]
        made[part] = Affine(kv.W[:, its], b, kv.whole)
    return made


def biases_apart(
    found: Mapping[str, Affine], own: Mapping[str, Tensor]
) -> dict[str, Affine]:
    """The one matrix with its biases, where each is a parameter by itself.

    Keys may have none: it would be the same for all of them.
    """
    qkv = found.get("qkv")
    biases = {part: own.get(f"{part}_bias") for part in "qkv"}
    q, k, v = biases.values()
    if qkv is None or qkv.b is not None or q is None or v is None:
        return {}
    b = torch.cat((q, torch.zeros_like(v) if k is None else k, v))
    if len(b) != qkv.W.shape[-1]:
        return {}
    return {"qkv": Affine(qkv.W, b, (*qkv.whole, *biases.values()))}


def as_matrix(inner: nn.Module, weight: Any) -> Tensor | None:
    """The matrix of a map, if it is one; a convolution of width one is."""
    if not isinstance(weight, Tensor):
        return None
    if isinstance(inner, nn.Conv1d | nn.Conv2d) and inner.groups == 1:
        single = all(size == 1 for size in weight.shape[2:])
        return weight.flatten(1) if single else None
    return weight if weight.ndim == 2 else None


def joined(listed: Sequence[Affine]) -> Affine:
    """Maps of one input, side by side."""
    W = torch.cat([one.W for one in listed], dim=-1)
    biases = [one.b for one in listed if one.b is not None]
    b = torch.cat(biases) if len(biases) == len(listed) else None
    return Affine(W, b, tuple(x for one in listed for x in one.whole))
