"""Every mechanism of the package at several sizes, each one call."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from selfattn import attention, flash_attention, sliding_window_attention
from selfattn.efficient.linear import linear_attention
from selfattn.efficient.linformer import LinformerAttention, MeanPooling
from selfattn.efficient.longformer import longformer_attention
from selfattn.efficient.performer import performer_attention
from selfattn.efficient.reformer import lsh_attention
from selfattn.efficient.sparse import fixed_attention, strided_attention
from selfattn.efficient.swin import swin_attention

Call = Callable[..., Tensor]
SIZES = (16, 64, 256)
ROUNDS = (1, 4)
NOT_CAUSAL = ("Linformer",)


def blocks_of(w: int, q: Tensor, k: Tensor, v: Tensor, **options) -> Tensor:
    """Swin on a grid of one row: blocks of w tokens, side by side."""
    row = {"grid": (1, q.shape[-2]), "window": (1, w)}
    return swin_attention(q, k, v, **row, **options)


def average(q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Tensor:
    """No attention at all: the plain average of all that may be seen."""
    total = v.cumsum(dim=-2) if causal else v.sum(dim=-2, keepdim=True)
    n = v.shape[-2]
    many = torch.arange(1, n + 1, dtype=v.dtype) if causal else v.new_tensor(n)
    return (total / many[..., None]).expand(q.shape[:-1] + v.shape[-1:])


def mechanisms(seed: int) -> dict[str, Call]:
    """By name and size: callables of q, k, v and causal."""
    found: dict[str, Call] = {"attention": attention, "flash": flash_attention}
    for w in SIZES:
        near = {"window": w}
        found[f"window {w}"] = partial(sliding_window_attention, **near)
        found[f"Longformer {w}"] = partial(longformer_attention, **near)
        found[f"Swin {w}"] = partial(blocks_of, w)
        found[f"Linformer {w}"] = LinformerAttention(MeanPooling(w))
        drawn = {"n_features": w, "seed": seed}
        found[f"Performer {w}"] = partial(performer_attention, **drawn)
    for rounds in ROUNDS:
        drawn = {"n_rounds": rounds, "seed": seed}
        found[f"LSH {rounds}"] = partial(lsh_attention, **drawn)
    found |= {"strided": strided_attention, "fixed": fixed_attention}
    return found | {"linear": linear_attention, "average": average}


def orders(seed: int, wanted: tuple[bool, ...]) -> Iterator[tuple[str, Call]]:
    """Each mechanism in each order that it has, by name."""
    for causal in wanted:
        for name, call in mechanisms(seed).items():
            if causal and name.startswith(NOT_CAUSAL):
                continue
            told = f"{name}, causal" if causal else name
            yield told, partial(call, causal=causal)


def normal(n: int, d: int, draw: torch.Generator) -> list[Tensor]:
    """Queries, keys and values, all normal of unit variance."""
    return list(torch.randn(3, n, d, generator=draw))


def peaked(n: int, d: int, draw: torch.Generator, back: int) -> list[Tensor]:
    """Each query is like one key, at most so far back, and as much noise."""
    noise, k, v = normal(n, d, draw)
    places = torch.arange(n)
    chance = torch.rand(n, generator=draw)
    steps = (chance * (places + 1).clamp(max=back)).floor().long()
    return [1.5 * (k[places - steps] + noise), k, v]


def distance(other: Tensor, exact: Tensor) -> float:
    """The size of the difference over the size of attention's output."""
    return ((other - exact).norm() / exact.norm()).item()


def weight_near(weights: Tensor, near: int) -> float:
    """The share of the weight on keys less than so far away."""
    places = torch.arange(weights.shape[-1])
    close = (places[:, None] - places).abs() < near
    return (weights * close).sum(dim=-1).mean().item()


def entropy_of(weights: Tensor) -> float:
    """Of the rows, in nats, on average."""
    logs = torch.special.entr(weights).sum(dim=-1)
    return logs.mean().item()


def keys_heard(weights: Tensor) -> float:
    """As if a row heard so many keys alike: e to its entropy."""
    return math.exp(entropy_of(weights))
