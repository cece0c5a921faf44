"""What becomes of the heads' output on its way out: it is normed, or gated."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.kinds.layer.affine import Affine
from selfattn.doctor.kinds.layer.entering import in_any_type, size
from selfattn.doctor.kinds.layer.learnt.left_over import (
    NOTHING,
    Steps,
    letters,
    maps_left,
)
from selfattn.doctor.kinds.layer.norming import is_norm
from selfattn.doctor.kinds.layer.parts import Projections
from selfattn.multihead import merge_heads, split_heads

Call = Callable[[Tensor], Tensor]
BENDS: tuple[Call, ...] = (torch.sigmoid, F.silu)


def gates(module: nn.Module, parts: Projections) -> Sequence[Steps]:
    """The ways in which a map of x may open what goes out."""
    if parts.gate is not None:
        return [{"gate": opened(parts.gate, bend)} for bend in BENDS]
    width = parts.v.W.shape[-1] // parts.n_kv_heads * parts.n_heads
    d_model = parts.q.W.shape[0]
    made: list[Steps] = []
    for name, part in maps_left(module, parts):
        if "g" not in letters(name) or part.in_features != d_model:
            continue
        call = by_type(part)
        if part.out_features in (width, parts.n_heads):
            made += [{"gate": opened(call, bend)} for bend in BENDS]
        if part.out_features == d_model:
            made += [{"end": opened(call, bend)} for bend in BENDS]
    return made or NOTHING


def by_type(part: nn.Module) -> Call:
    """A map that takes numbers of any type."""
    known: dict[torch.dtype, nn.Module] = {}

    def call(x: Tensor) -> Tensor:
        if x.dtype not in known:
            known[x.dtype] = copy_of(part).to(x.dtype)
        said: Tensor = known[x.dtype](x)
        return said

    return call


def opened(
    call: Call | Affine, bend: Call
) -> Callable[[Tensor, Tensor], Tensor]:
    """Features side by side, each, or each head, as far as its gate is."""

    def gate(whole: Tensor, x: Tensor) -> Tensor:
        how_far = bend(call(x))
        times = whole.shape[-1] // how_far.shape[-1]
        return whole * how_far.repeat_interleave(times, dim=-1)

    return gate


def leaving(
    module: nn.Module, parts: Projections, own: Sequence[nn.Module]
) -> Sequence[Steps]:
    """The ways in which what goes out may be normed: heads, all, or the end.

    Args:
        module: the layer.
        parts: its projections.
        own: norms that are of queries and of keys.
    """
    d = parts.v.W.shape[-1] // parts.n_kv_heads
    width, d_model = d * parts.n_heads, parts.q.W.shape[0]
    out = parts.out.whole if parts.out else ()
    behind, listed = False, []
    for part in module.modules():
        weight = getattr(part, "weight", None)
        behind |= any(weight is x for x in out)
        if part is not module and is_norm(part) and part not in own:
            listed.append((part, behind))
    made: list[Sequence[Steps]] = []
    first = [*module.children()]
    for norm, last in listed:
        call, n = in_any_type(norm), size(norm)
        choices: list[Steps] = []
        if n == d_model and norm in first:
            choices.append({})  # it may be one of what comes in
        if n == d_model and (last or norm not in first):
            choices.append({"end": lambda x, _, call=call: call(x)})
        if n == width:
            choices.append({"done": of_all(call)})
        elif n == d:
            choices.append({"done": call})
        if choices:
            made.append(choices)
    return [joined(one) for one in product(*made)] if made else NOTHING


def joined(steps: Sequence[Steps]) -> Steps:
    """All of some steps."""
    made: dict[str, Any] = {}
    for one in steps:
        made |= one
    return made


def of_all(call: Call) -> Call:
    """A norm of all features, for heads."""

    def normed(x: Tensor) -> Tensor:
        return split_heads(call(merge_heads(x)), x.shape[-3])

    return normed
