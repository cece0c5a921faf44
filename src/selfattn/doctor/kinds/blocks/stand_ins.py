"""A block that sees what a block is to see; and the ways in which it may not.

It has learnt nothing: what its tokens are told by others hangs on who sees
whom alone.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from selfattn.doctor.exercise import Mistake, described, name_of
from selfattn.doctor.kinds.blocks.decoder import mistakes as decoder
from selfattn.doctor.kinds.blocks.encoder import mistakes as encoder
from selfattn.doctor.probes import numbers
from selfattn.masks import causal_mask

Table = Callable[[int, int], Tensor]


class Way(NamedTuple):
    """What a stand-in lets its tokens see; each its own mistake, if any."""

    past: Table | None  # of its own tokens
    context: bool = True  # whether it looks at one
    hidden: Callable[[Tensor | None], Tensor | None] = lambda mask: mask


def looked(x: Tensor, source: Tensor, sees: Tensor | None) -> Tensor:
    """What tokens are told by others, of whatever width."""
    if source.shape[-1] != x.shape[-1]:
        W = numbers(source.shape[-1], x.shape[-1], seed=4).to(x)
        source = source @ W
    table = x @ source.mT / math.sqrt(x.shape[-1])
    if sees is not None:
        table = table.masked_fill(~sees, -torch.inf)
    return table.softmax(dim=-1).nan_to_num() @ source


def stand_in(
    way: Way,
    x: Tensor,
    context: Tensor | None = None,
    mask: Tensor | None = None,
    padding: Tensor | None = None,
) -> Tensor:
    """A block that sees what a block is to see, and has learnt nothing."""
    sees = mask if padding is None else padding[:, None]
    sees = way.hidden(sees)
    past = None if way.past is None else way.past(x.shape[-2], x.shape[-2])
    if context is None:
        both = [one for one in (sees, past) if one is not None]
        own = both[0] & both[-1] if both else None
        return x + looked(x, x, own)
    x = x + looked(x, x, past)
    return x + looked(x, context, sees) if way.context else x


def not_used(mask: Tensor | None) -> None:
    """Whatever is to be hidden is seen."""


def turned(mask: Tensor | None) -> Tensor | None:
    """What is to be seen is hidden, and the rest is seen."""
    return None if mask is None else ~mask


PASTS: tuple[tuple[Any, Table | None], ...] = (
    (decoder.the_future_is_seen, None),
    (decoder.only_the_future_is_seen, lambda n, m: ~causal_mask(n, m)),
    (decoder.one_too_many, lambda n, m: torch.ones(n, m).tril(1).bool()),
    (decoder.not_itself, lambda n, m: torch.ones(n, m).tril(-1).bool()),
)

# What is seen of it has many causes; who sees just one too many has one.
SIGHTS = tuple(
    map(
        name_of,
        (
            decoder.the_future_is_seen,
            decoder.only_the_future_is_seen,
            decoder.mask_of_the_context_not_passed_on,
            decoder.mask_of_the_context_upside_down,
            encoder.mask_not_passed_on,
            encoder.mask_upside_down,
        ),
    )
)


def mistakes(usual: Way, across: bool) -> Iterator[Mistake]:
    """What a block may let its tokens see that it should not."""
    listed: list[tuple[Any, Way]] = []
    if usual.past is not None:
        listed += [(known, usual._replace(past=p)) for known, p in PASTS]
    unused, upside_down = encoder.mask_not_passed_on, encoder.mask_upside_down
    if across:
        unused = decoder.mask_of_the_context_not_passed_on
        upside_down = decoder.mask_of_the_context_upside_down
        blind = usual._replace(context=False)
        listed.append((decoder.no_cross_attention, blind))
    listed += [
        (unused, usual._replace(hidden=not_used)),
        (upside_down, usual._replace(hidden=turned)),
    ]
    for known, way in listed:
        yield replace(described(known), answer=partial(stand_in, way))
