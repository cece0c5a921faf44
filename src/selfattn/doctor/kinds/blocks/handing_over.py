"""What a block is handed: its texts by place or name, and what else it needs.

Some take their context by its name alone. And some want more than their
texts: the first embedding again, or where tokens stand. What that is nobody
said; but it has a number of its own for each of a text, and so the texts
themselves will do.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.kinds.trial_calls import listed, outcome
from selfattn.doctor.patient import handed

OF_MASKS = re.compile("mask|pad|bias")  # in the names of what is no text
MOST = 3  # arguments of which nobody said what they are


def over(
    thing: Callable[..., Any],
    texts: Sequence[Tensor],
    given: Mapping[str, Any],
) -> Any:
    """What a block gives for some texts, and what is given by name."""
    placed, named = by_place_or_name(thing, texts, given)
    wanting = missing(thing, len(placed), named)
    if 0 < len(wanting) <= MOST:
        for chosen in product((*texts, None), repeat=len(wanting)):
            more = dict(zip(wanting, chosen, strict=True))
            said = outcome(handed, thing, *placed, **named, **more)
            if said is not None:
                return handed(thing, *placed, **named, **more)
    return handed(thing, *placed, **named)


def wants_more(
    thing: nn.Module, texts: int, given: Sequence[str | None]
) -> bool:
    """Whether it cannot be called with so many texts and a few by name."""
    some: Any = [None] * texts
    named = {name: None for name in given if name}
    placed, named = by_place_or_name(thing, some, named)
    return bool(missing(thing, len(placed), named))


def by_place_or_name(
    thing: Any, texts: Sequence[Tensor], given: Mapping[str, Any]
) -> tuple[Sequence[Tensor], dict[str, Any]]:
    """The texts that have a place, and all that is told by its name.

    What must be told by name is a text; else those are for which there is no
    place.
    """
    free = [p for p in listed(thing) if p.name not in given]
    places = [p for p in free if p.kind is not p.KEYWORD_ONLY]
    alone = [
        p
        for p in free
        if p.kind is p.KEYWORD_ONLY and not OF_MASKS.search(p.name)
    ]
    needed = [p for p in alone if p.default is p.empty]
    most = len(texts) - bool(places)
    n = min(len(needed), most)
    if not needed and places:
        n = max(0, min(len(texts) - len(places), len(alone)))
    names = [p.name for p in (needed or alone)[:n]]
    first = len(texts) - n
    return texts[:first], {
        **dict(zip(names, texts[first:], strict=True)),
        **given,
    }


def missing(thing: Any, n: int, named: Mapping[str, Any]) -> list[str]:
    """The names of what must be given, besides n by place and some by name."""
    return [
        p.name
        for p in unplaced(thing, n)
        if p.default is p.empty and p.name not in named
    ]


def unplaced(thing: Any, n: int) -> Iterator[Any]:
    """The parameters of what is called with n by place."""
    for p in listed(thing):
        if p.kind is p.KEYWORD_ONLY or n <= 0:
            yield p
        else:
            n -= 1
