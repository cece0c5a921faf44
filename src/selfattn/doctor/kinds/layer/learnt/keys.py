"""Keys that are no tokens: learnt ones, or made of tokens that are learnt."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds.layer.learnt.left_over import (
    NOTHING,
    Steps,
    letters,
    numbers_left,
)
from selfattn.doctor.kinds.layer.parts import Projections

NAMES = re.compile(
    "null|mem|bias_[kv]|persist|extra|register|token|latent|prefix|learn|sink"
)
PAIR = 2  # a key and its value


def of_no_token(
    module: nn.Module, parts: Projections, both: Sequence[Any]
) -> Sequence[Steps]:
    """The ways in which keys and values that are learnt may stand in front.

    Args:
        module: the layer.
        parts: its projections.
        both: how its queries and its keys are normed, if they are.
    """
    left = [
        (name, x)
        for name, x in numbers_left(module, parts)
        if NAMES.search(name.lower()) and x.ndim and x.numel() > parts.n_heads
    ]
    d_head = parts.q.W.shape[-1] // parts.n_heads
    if len(left) == 1:
        x = left[0][1]
        x = x.squeeze(0) if x.ndim > PAIR and len(x) == 1 else x
        if len(x) == PAIR and x.shape[-1] != parts.k.W.shape[0]:
            return in_front(x[0], x[1], parts.n_heads, d_head, both)
        if x.ndim == PAIR and x.shape[-1] == parts.k.W.shape[0]:
            return [{"before": tokens_first(x)}]
    keys = [x for name, x in left if "k" in letters(name)]
    values = [x for name, x in left if "v" in letters(name)]
    if len(keys) == 1 == len(values):
        return in_front(keys[0], values[0], parts.n_heads, d_head, both)
    return NOTHING


def tokens_first(
    learnt: Tensor,
) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Tokens that are learnt, before those of the context."""

    def before(x: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        more = learnt.to(context).expand(len(context), -1, -1)
        return x, torch.cat((more, context), dim=-2)

    return before


def in_front(
    key: Tensor, value: Tensor, n_heads: int, d: int, both: Sequence[Any]
) -> Sequence[Steps]:
    """Some keys and values before all others; keys may be normed, too."""
    k, v = (as_heads(x, n_heads, d) for x in (key, value))
    if k is None or v is None or k.shape != v.shape:
        return NOTHING
    made: list[Steps] = [{"more": first(k, v)}]
    return [{"more": first(k, v, both[1])}, *made] if both else made


def of_x_too(parts: Projections, cross: bool) -> Sequence[Steps]:
    """In cross-attention, what looks may stand among what is looked at."""
    if not cross or parts.q.W.shape[0] != parts.k.W.shape[0]:
        return NOTHING

    def before(x: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        return x, torch.cat((x, context), dim=-2)

    return [{}, {"before": before}]


def first(
    key: Tensor, value: Tensor, norm: Any = None
) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Keys and values, with some before them in every text."""

    def more(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        shape = len(k), k.shape[1], -1, -1
        given, own = key.to(k).expand(shape), value.to(v).expand(shape)
        given = given if norm is None else norm(given)
        return torch.cat((given, k), -2), torch.cat((own, v), -2)

    return more


def as_heads(x: Tensor, n_heads: int, d: int) -> Tensor | None:
    """Keys as (n_heads or 1, how many, d), if they have that many features."""
    while x.ndim > 1 and len(x) == 1:
        x = x[0]
    if x.shape[-1] == n_heads * d and n_heads > 1:
        x = x.unflatten(-1, (n_heads, d))
    if x.shape[-1] != d or x.ndim > 3:
        return None
    if x.ndim < 3:
        by_head = x.ndim > 1 and len(x) == n_heads
        return x[:, None] if by_head else x.view(1, -1, d)
    return x if len(x) == n_heads else x.transpose(0, 1)
