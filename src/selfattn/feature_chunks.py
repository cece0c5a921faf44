"""Features of tokens, where attention has no scores: read chunk by chunk, or
token by token.
"""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NoReturn

import torch
from torch import Tensor

from selfattn.called import answered, check_function
from selfattn.checks import check_floats, check_places
from selfattn.dot_product import widen
from selfattn.hidden import match, unfelt_sums
from selfattn.infinite import heaviest
from selfattn.pieces import (
    LOG2_E,
    add_product,
    chunks,
    divisor,
    on_any_axes,
    without_autocast,
)
from selfattn.signatures import shown
from selfattn.spoilt import unheard

LOWEST = -1000.0  # where exp is zero, of any type


class Reader:
    """Reads chunk after chunk of tokens, always into the same memory.

    New memory must first be mapped, which takes longer than to fill it.
    """

    def __init__(
        self, tokens: tuple[Tensor, ...], ours: bool, size: int, causal: bool
    ):
        """What is read, and in which order."""
        q, k, v = self.tokens = tokens
        self.ours = ours
        (batch, n_q, d), n_k = q.shape, k.shape[-2]
        size = size if causal else 2 * size
        self.order = [*chunks(n_q, n_k, size, causal=causal)]
        sizes = [x.stop - x.start for both in self.order for x in both]
        longest = max(sizes, default=0)
        # For queries and keys one memory, unless both are read at a time.
        [room] = widen(q.new_empty(2 + causal, batch, longest, d))
        *self.rooms, self.spare = room
        [self.sums] = widen(q.new_empty(batch, longest, v.shape[-1]))

    def read(self, rows: slice, keys: slice) -> tuple[Tensor, Tensor, Tensor]:
        """A chunk's features and values; the features are made if ours."""
        q, k, v = self.tokens
        f_q, f_k, values = widen(q[:, rows], k[:, keys], v[:, keys])
        if self.ours:
            f_q = self.features(f_q, self.rooms[0])
            f_k = self.features(f_k, self.rooms[-1])
        return f_q, f_k, values

    def features(self, x: Tensor, room: Tensor) -> Tensor:
        """φ of a chunk, as `elu_plus_one` makes it: that has a gradient, which
        what is written to memory at hand cannot have.
        """
        # Nor can one be written with the other: `relu`, which passes back
        # nothing at 0, writes to no memory at hand, and `clamp`, which does,
        # passes back one; at 0 the exponential passes back one already.
        if not x.numel():
            return x
        made, positive = room[:, : x.shape[1]], self.spare[:, : x.shape[1]]
        torch.clamp(x, max=0, out=made).mul_(LOG2_E).exp2_()
        return made.add_(torch.clamp(x, min=0, out=positive))

    def ask(self, memory: Any, f_q: Tensor) -> tuple[Tensor, Tensor]:
        """What a chunk of queries finds in a memory: φ(q) S and φ(q) Z."""
        n = f_q.shape[1]
        summed = torch.bmm(f_q, memory.pairs, out=self.sums[:, :n])
        weighed = torch.mul(f_q, memory.total, out=self.spare[:, :n])
        return summed, weighed.sum(dim=-1, keepdim=True)


def unfelt_features(
    attend: Callable[[Tensor, Tensor, Tensor], Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    ours: bool,
) -> Tensor:
    """Attend by features, those of elu + 1 if they are ours, on any axes; and
    where something came out spoilt, without what is hidden.
    """
    numbers = none_infinite if ours else torch.clone
    most = heaviest if q.dtype == torch.float64 else None
    return unfelt_sums(on_any_axes(attend), q, k, v, numbers, most)


def none_infinite(x: Tensor) -> Tensor:
    """Tokens of the same features without minus infinity: far above it, elu
    + 1 and its slope are zero already.
    """
    return x.clamp(min=LOWEST)


@without_autocast
def recalled(
    asked: Tensor, pairs: Tensor, total: Tensor
) -> tuple[Tensor, Tensor]:
    """What one query finds in a memory, φ(q) S / φ(q) Z; and the divisor."""
    weight = divisor((asked * total).sum(dim=-1, keepdim=True))
    return (asked @ pairs / weight).squeeze(-2), weight


def recalled_exactly(asked: Tensor, pairs: Tensor, total: Tensor) -> Tensor:
    """What one query finds in a memory, in float64. Where one of them is no
    number, nothing is passed back: it would be NaN, even of what nobody asks.

    >>> pairs = torch.tensor([[[2.0]], [[torch.nan]]], requires_grad=True)
    >>> asked, total = torch.ones(2, 2, 1, 1)
    >>> output = recalled_exactly(asked, pairs, total)
    >>> torch.autograd.grad(output[0].sum(), pairs)
    (tensor([[[1.]],
    <BLANKLINE>
            [[0.]]]),)
    """
    asked, pairs, total = wide = [x.double() for x in (asked, pairs, total)]
    whole, _ = recalled(*wide)
    if not whole.requires_grad:
        return whole
    sums = asked @ pairs, asked @ total.mT
    spoilt = (~x.isfinite().all(-1).all(-1) for x in (*wide, *sums))
    lost = reduce(torch.logical_or, spoilt)[..., None]
    clean, _ = recalled(*(torch.where(lost[..., None], 0.0, x) for x in wide))
    return torch.where(lost, whole.detach(), clean)


def sound_pairs(key: Tensor, v: Tensor) -> Tensor:
    """A key's features, a column, times its value, a row: of what is spoilt,
    nothing is passed back.
    """
    return match(key, v.mT, lambda column, other: column * other.mT)


def remembered(
    memory: Any,
    key: Tensor,
    v: Tensor,
    pair: Callable[[Tensor, Tensor], Tensor] = torch.mul,
) -> tuple[Tensor, Tensor]:
    """The memory with one token more, by the features of its key."""
    # A copy, for a key may be the caller's own.
    pairs = pair(key[..., None], v[..., None, :])
    token = pairs, key[..., None, :].clone()
    if memory is None:
        return token
    check_alike(memory, token)
    return memory.pairs + token[0], memory.total + token[1]


def check_alike(memory: Any, token: Any) -> None:
    """Raise unless what is remembered can be added to what a token brings."""
    for kept, new in zip(memory, token, strict=True):
        together = torch.promote_types(kept.dtype, new.dtype)
        no_wider = kept.is_floating_point() and together == new.dtype
        if kept.shape != new.shape or not no_wider:
            raise ValueError(
                "memory must be of tokens like these, "
                f"{' and '.join(map(shown, token))}, but it is "
                f"{' and '.join(map(shown, memory))}"
            )


def features(
    feature_map: Callable[[Tensor], Tensor], q: Tensor, k: Tensor
) -> tuple[Tensor, Tensor]:
    """φ of the queries and of the keys, a row of numbers for each of them.

    Raises:
        TypeError: if it cannot be called with one of them.
        ValueError: if that is not what it gives.
    """
    check_function("feature_map", feature_map)
    f_q = unheard(partial(features_of, "q", feature_map), q, (-1,))
    f_k = unheard(partial(features_of, "k", feature_map), k, (-1,))
    if f_q.shape[-1] != f_k.shape[-1]:
        refuse_features(k, f_k)
    if f_q.dtype != f_k.dtype:
        raise ValueError(
            "feature_map must make features of one type of q and k, but it "
            f"made {f_q.dtype} and {f_k.dtype}"
        )
    return f_q, f_k


def wide_features(
    feature_map: Callable[[Tensor], Tensor], q: Tensor, k: Tensor, ours: bool
) -> tuple[Tensor, Tensor]:
    """The features of queries and keys, in float32 at least: made so of ours,
    and widened of another map, whose own weights may be in half precision.
    """
    if ours:
        return features(feature_map, *widen(q, k))
    f_q, f_k = widen(*features(feature_map, q, k))
    return f_q, f_k


def features_of(
    name: str, feature_map: Callable[[Tensor], Tensor], x: Tensor
) -> Tensor:
    """φ of some tokens, once it is clear that it is that."""
    # It may work in place.
    made = answered("feature_map", feature_map, x.clone())
    check_floats(f"what feature_map makes of {name}", made)
    if made.shape[:-1] != x.shape[:-1] or not made.shape[-1]:
        refuse_features(x, made)
    check_places(**{name: x, f"what feature_map makes of {name}": made})
    return made


def refuse_features(x: Tensor, made: Tensor) -> NoReturn:
    """Raise, as these are no features of x."""
    raise ValueError(
        "feature_map must make (..., n, d) into (..., n, any number), at "
        f"least 1, but it made {tuple(x.shape)} into {tuple(made.shape)}"
    )


def memorise(
    memory: Any,
    features: Tensor,
    values: Tensor,
    weight: Tensor | None = None,
) -> None:
    """Add some tokens to the memory, in place; each weighs 1, or this."""
    if not features.numel():
        return
    add_product(memory.pairs, features.mT, values)
    weighed = features if weight is None else features * weight
    memory.total.add_(weighed.sum(dim=-2, keepdim=True))
