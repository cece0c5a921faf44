"""A layer with a cache, in which the mistakes are shown."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn.doctor.exercises.positions.rope import angles, turned
from selfattn.doctor.probes import numbers

D = 6  # features of the layer in which the mistakes are shown


def vectors(x: Tensor) -> Tensor:
    """What enters the layer: features, or words by their vectors."""
    if not x.is_floating_point():
        return numbers(2, D, seed=5)[x] * 2 / 3
    return x @ (numbers(x.shape[-1], D, seed=4) / 2)


def project(x: Tensor, offset: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of tokens, the first at this position."""
    q, k, v = (vectors(x) @ (numbers(D, D, seed=s) / 2) for s in (6, 7, 8))
    angle = angles(q, offset)
    return turned(q, angle), turned(k, angle), v


def attention(q, k, v, causal=False, mask=None):
    """The definition; a last query sits on the last key."""
    if causal:
        n_q, n_k = q.shape[1], k.shape[1]
        mask = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def count(cache: Any) -> int:
    """How many tokens a cache holds."""
    return 0 if cache is None else cache[0].shape[1]


def joined(cache: Any, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The keys and values kept so far, and new ones behind them."""
    if cache is None:
        return k, v
    return torch.cat((cache[0], k), dim=1), torch.cat((cache[1], v), dim=1)


def cached(x: Tensor, cache: Any = None) -> tuple[Tensor, Any]:
    """Causal attention from the new tokens to all there were so far."""
    q, k, v = project(x, count(cache))
    k, v = joined(cache, k, v)
    return attention(q, k, v, causal=True), (k, v)
