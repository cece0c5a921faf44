"""RoPE in texts longer than training's: clamped, or with slower speeds."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from selfattn.positions import rope

MOST = 30  # places back; training met it in every text, 31 by one pair
IN_STEP = 28  # from 3 to there the fastest pair turns four times, nearly


# Of eight pairs, the fastest first, 0 and 1 go all the way round within 31
# places, so that training has met their every angle; 2 to 7 do not. Which are
# clamped, and at which place.
CLAMPED = {
    "": (range(8), MOST),
    "pair 0": ([0], MOST),
    "pair 1": ([1], MOST),
    "pair 2": ([2], MOST),
    "pairs 2 to 7": (range(2, 8), MOST),
    "pairs 3 to 7": (range(3, 8), MOST),
    "at 28": (range(8), IN_STEP),
    "pair 0 at 28": ([0], IN_STEP),
}


def backwards(n: int) -> Tensor:
    """How far back each key stands from each query, (n, n)."""
    place = torch.arange(n)
    return place[:, None] - place


def near_rope(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    pairs: Sequence[int] | None = None,
    to: int = MOST,
    **options: Any,
) -> Tensor:
    """Attention with RoPE in which no distance is greater than the farthest.

    Queries and keys come unturned. The score of a key too far back is that
    of the same two vectors, ``to`` places apart in these pairs of features,
    all if None, and as far as they are in the others.
    """
    back, half = backwards(q.shape[-2]), q.shape[-1] // 2
    ours = torch.zeros(half)
    ours[list(range(half) if pairs is None else pairs)] = 1
    ours = ours.repeat_interleave(2)  # features 2i and 2i + 1 are pair i
    turned_q, turned_k = rope(q), rope(k)
    apart = rope(q[..., None, :], offset=to)[..., 0, :]
    far = (ours * apart) @ k.mT + ((1 - ours) * turned_q) @ turned_k.mT
    scores = (turned_q @ turned_k.mT).where(back <= MOST, far)
    scores = (scores / q.shape[-1] ** 0.5).masked_fill(back < 0, -torch.inf)
    return scores.softmax(dim=-1) @ v


def turned(x: Tensor, *, offset: int = 0, speeds: Tensor) -> Tensor:
    """RoPE with other speeds than its own, (d/2,)."""
    place = torch.arange(offset, offset + x.shape[-2])
    angle = place[:, None] * speeds
    number = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    turn = torch.polar(torch.ones_like(angle), angle).to(number.dtype)
    return torch.view_as_real(number * turn).flatten(-2)
