"""What a block is handed: its texts by place or name, and what else it needs.

Some take their context by its name alone.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds.text_layouts import read_back
from selfattn.doctor.kinds.trial_calls import listed
from selfattn.doctor.patient import Facts, handed

PLACES, PLACES_OF_EACH = "places", "places of each text"
FLAGS = {"off": False, "on": True}
# A text, by its number, places of tokens, a flag, or nothing.
Beside = int | str | None
# In the names of what tells where tokens stand.
OF_PLACES = re.compile("pos|place|ids$|indices|index|times?$|steps?$")
OF_MASKS = re.compile("mask|pad|bias")  # in the names of what is no text
OF_FLAGS = re.compile("^(is|use|return|needs?|with|apply)_|causal|flag$")
# In the names of a context, and of what hears it.
CROSS = ("cross", "enc", "memory", "context", "src", "multihead_attn")


def over(
    thing: Callable[..., Any],
    texts: Sequence[Tensor],
    given: Mapping[str, Any],
) -> Any:
    """What a block gives for some texts, and what is given by name."""
    placed, named = by_place_or_name(thing, texts, given)
    return handed(thing, *placed, **named)


def beside(texts: Sequence[Tensor], facts: Facts) -> dict[str, Any]:
    """What it is handed beside these texts, by its names: one of them each,
    where its tokens stand, or a flag.

    Or, ``otherwise``, something else in its place, unless that is a mask's:
    to see whether it counts.
    """
    chosen: Mapping[str, Beside] = facts.get("besides") or {}
    made: dict[str, Any] = {}
    for name, which in chosen.items():
        if isinstance(which, str):
            flag = FLAGS.get(which)
            named = places(which, texts[0], facts) if flag is None else flag
            made[name] = named
            continue
        text = None if which is None else texts[which]
        other = facts.get("otherwise") and not OF_MASKS.search(name)
        made[name] = 1 - text if other and text is not None else text
    return made


def places(which: str, x: Tensor, facts: Facts) -> Tensor:
    """The number of each token in its text; for all texts, or for each."""
    layout = str(facts.get("layout"))
    n_texts, n, _ = read_back(x, layout).shape
    numbered = torch.arange(n)
    if which == PLACES:
        return numbered
    rows = numbered.expand(n_texts, -1)
    return rows.T if layout == "NBD" else rows


def wanted(thing: nn.Module, n_texts: int, given: Sequence[str]) -> list[str]:
    """What it must be given beside so many texts, and a few by name."""
    some: Any = [None] * n_texts
    placed, named = by_place_or_name(thing, some, dict.fromkeys(given))
    return [
        p.name
        for p in unplaced(thing, len(placed))
        if p.default is p.empty and p.name not in named
    ]


def by_place_or_name(
    thing: Any, texts: Sequence[Any], given: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The texts that have a place, and all that is told by its name.

    A text goes by its name where something stands before it that takes none;
    and for which nothing is listed, it has a place.
    """
    every = listed(thing)
    takers = takers_of([p for p in every if p.name not in given], len(texts))
    names = [p.name for p in takers]
    named = dict(zip(names, texts, strict=False))
    placed = []
    for p in every:
        if p.kind is p.KEYWORD_ONLY or p.name not in named:
            break
        placed.append(named.pop(p.name))
    return [*placed, *texts[len(names) :]], {**named, **given}


def takers_of(free: Sequence[Parameter], n: int) -> list[Parameter]:
    """The parameters that take so many texts, of those that are free.

    The first takes the first, unless it is called like a mask or a flag.
    """
    ranked = sorted(free, key=likeness)
    first = [p for p in free if not is_no_text(p.name)][:1]
    chosen = [*first, *(p for p in ranked if p not in first)][:n]
    return [p for p in free if p in chosen]


def likeness(p: Parameter) -> int:
    """How far a parameter is from one that takes a context.

    A place that must be filled comes before all that goes by name, or may be
    left out, but for a context by its name that must be told.
    """
    needed, by_name = p.default is p.empty, p.kind is p.KEYWORD_ONLY
    like = any(word in p.name.lower() for word in CROSS)
    order = (
        needed and by_name and like,
        needed and not by_name and not OF_PLACES.search(p.name),
        needed and not by_name,
        like,
        needed,
        not by_name,
        True,
    )
    if is_no_text(p.name):
        return len(order) + (not needed)
    return order.index(True)


def is_no_text(name: str) -> bool:
    """Whether something is called like a mask, or like a flag."""
    return bool(OF_MASKS.search(name) or OF_FLAGS.search(name))


def unplaced(thing: Any, n: int) -> Iterator[Any]:
    """The parameters of what is called with n by place."""
    for p in listed(thing):
        if p.kind is p.KEYWORD_ONLY or n <= 0:
            yield p
        else:
            n -= 1
