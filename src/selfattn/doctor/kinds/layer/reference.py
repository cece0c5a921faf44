"""Attention by heads, of given projections: the reference of two kinds."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from selfattn.doctor.kinds.layer.parts import Projections
from selfattn.dot_product import masked_softmax
from selfattn.masks import causal_mask
from selfattn.multihead import merge_heads, split_heads

Table = Callable[[int, int], Tensor]


class Masks(NamedTuple):
    """All that hides keys, each True where one may look."""

    table: Tensor | None = None  # (n_q, n_k)
    padding: Tensor | None = None  # (batch, n_k)
    causal: bool = False  # by a flag
    always: bool = False  # without a flag
    claimed: Table | None = None  # of n_q and n_k, that it keeps by itself


def allowed(masks: Masks, x: Tensor, context: Tensor) -> Tensor | None:
    """One mask for all, that broadcasts to (batch, n_heads, n_q, n_k)."""
    found = masks.table
    if masks.padding is not None:
        real = masks.padding[:, None, None, :]
        found = real if found is None else found & real
    if masks.causal or masks.always:
        past = causal_mask(x.shape[-2], context.shape[-2])
        found = past if found is None else found & past
    if masks.claimed is not None:
        kept = masks.claimed(x.shape[-2], context.shape[-2])
        found = kept if found is None else found & kept
    return found


def heads(
    parts: Projections, x: Tensor, context: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, (batch, n_heads, n, d_head)."""
    q = split_heads(parts.q(x), parts.n_heads)
    k = split_heads(parts.k(context), parts.n_kv_heads)
    v = split_heads(parts.v(context), parts.n_kv_heads)
    group = parts.n_heads // parts.n_kv_heads
    return q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)


def scores(q: Tensor, k: Tensor) -> Tensor:
    """The scores, scaled."""
    return q @ k.mT / math.sqrt(q.shape[-1])


def joined(parts: Projections, output: Tensor) -> Tensor:
    """The heads' outputs side by side, projected."""
    merged = merge_heads(output)
    return merged if parts.out is None else parts.out(merged)


def layer(
    parts: Projections, x: Tensor, context: Tensor, masks: Masks
) -> tuple[Tensor, Tensor]:
    """The reference: output, (batch, n_q, d_model), and weights by heads."""
    dtype = torch.promote_types(x.dtype, torch.float32)
    x, context, own = x.to(dtype), context.to(dtype), x.dtype
    q, k, v = heads(parts, x, context)
    weights = masked_softmax(scores(q, k), allowed(masks, x, context))
    return joined(parts, weights @ v).to(own), weights
