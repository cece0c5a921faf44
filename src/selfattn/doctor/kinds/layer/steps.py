"""A layer in steps: those of attention, and what is around them."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn.doctor.deviations.design import USUAL, Design, attend, unchanged
from selfattn.doctor.kinds.layer.parts import Projections
from selfattn.doctor.kinds.layer.reference import Masks
from selfattn.multihead import merge_heads, split_heads

Split = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True)
class Layer(Design):
    """How each step of a layer is done, in the order of `layer_by`."""

    before: Callable[..., tuple[Tensor, Tensor]]  # of x and the context
    project: Callable[..., tuple[Tensor, Tensor, Tensor]]  # of parts, x, y
    split_q: Split  # (…, n, d_model) to (…, n_heads, n, d_head)
    split_k: Split
    split_v: Split
    inner: Callable[..., tuple[Tensor, Tensor]]  # of q and k, by heads
    repeat_k: Callable[[Tensor, int], Tensor]  # key heads, for their group
    repeat_v: Callable[[Tensor, int], Tensor]
    more: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # of k and v
    padded: Callable[[Tensor], Tensor | None]  # of (batch, 1, 1, n_k)
    claims: Callable[[Tensor], Tensor]  # of a mask that it keeps by itself
    shown: Callable[[Tensor | None], Tensor | None]  # of all that is hidden
    done: Callable[[Tensor], Tensor]  # of the heads' output
    merge: Callable[[Tensor, Tensor], Tensor]  # of the heads' output, and x
    gate: Callable[[Tensor, Tensor], Tensor]  # of what is merged, and x
    out: Callable[[Projections, Tensor], Tensor]
    end: Callable[[Tensor, Tensor], Tensor]  # of the output and x


def as_given(x: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
    """X and the context, not normed before they are projected."""
    return x, context


def projected(parts: Projections, x: Tensor, context: Tensor) -> Any:
    """Queries of x, keys and values of the context."""
    return parts.q(x), parts.k(context), parts.v(context)


def as_split(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys, neither normed nor turned."""
    return q, k


def repeated(x: Tensor, times: int) -> Tensor:
    """Each head of keys for the heads of its group, which are neighbours."""
    return x.repeat_interleave(times, dim=1)


def merged(output: Tensor, x: Tensor) -> Tensor:
    """The heads side by side."""
    return merge_heads(output)


def mixed(parts: Projections, merged: Tensor) -> Tensor:
    """The heads' outputs, projected, if there is a projection."""
    return merged if parts.out is None else parts.out(merged)


USUAL_LAYER = Layer(
    **{field.name: getattr(USUAL, field.name) for field in fields(Design)},
    before=as_given,
    project=projected,
    split_q=split_heads,
    split_k=split_heads,
    split_v=split_heads,
    inner=as_split,
    repeat_k=repeated,
    repeat_v=repeated,
    more=as_split,
    padded=unchanged,
    claims=unchanged,
    shown=unchanged,
    done=unchanged,
    merge=merged,
    gate=unchanged,
    out=mixed,
    end=unchanged,
)


def layer_by(
    design: Layer, parts: Projections, x: Tensor, context: Tensor, masks: Masks
) -> Tensor:
    """A layer's output, (batch, n_q, d_model), by a design."""
    own = x.dtype
    wide = torch.promote_types(own, torch.float32)
    x, context, own_keys = x.to(wide), context.to(wide), context.shape[-2]
    given, seen = design.before(x, context)
    q, k, v = design.project(parts, given, seen)
    q = design.split_q(q, parts.n_heads)
    k = design.split_k(k, parts.n_kv_heads)
    v = design.split_v(v, parts.n_kv_heads)
    q, k = design.inner(q, k)
    group = parts.n_heads // parts.n_kv_heads
    if group > 1:
        k, v = design.repeat_k(k, group), design.repeat_v(v, group)
    k, v = design.more(k, v)
    hidden = widened(hidden_by(design, masks, x), k.shape[-2], own_keys)
    hidden = None if hidden is None else design.shown(hidden)
    output = attend(
        replace(design, allow=unchanged, always=False),
        q,
        k,
        v,
        hidden,
        masks.causal or masks.always or design.always,
        d_model=x.shape[-1],
    )
    whole = design.gate(design.merge(design.done(output), given), given)
    return design.end(design.out(parts, whole), x).to(own)


def widened(allowed: Tensor | None, n_k: int, own: int) -> Tensor | None:
    """A mask for more keys than its own, which come first and are seen by all.

    A causal mask is one for them already: its last key is the last query's.
    """
    if allowed is None or allowed.shape[-1] != own:
        return allowed
    return F.pad(allowed, (n_k - own, 0), value=True)


def hidden_by(design: Layer, masks: Masks, x: Tensor) -> Tensor | None:
    """All that masks hide, as a design reads them.

    A layer that claims a mask of its own looks at itself.
    """
    found = None if masks.table is None else design.allow(masks.table)
    if masks.padding is not None:
        real = design.padded(masks.padding[:, None, None, :])
        if real is not None:
            found = real if found is None else found & real
    if masks.claimed is not None:
        kept = design.claims(masks.claimed(x.shape[-2], x.shape[-2]))
        found = kept if found is None else found & kept
    return found
