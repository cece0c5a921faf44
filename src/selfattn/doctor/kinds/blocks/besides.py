"""What a block is handed beside its texts and its masks.

Some want more than their texts: the first embedding again, or where tokens
stand. What that is nobody said; but it has a number of its own for each of a
text, and so the texts themselves will do. Which, is found once, by calls of
a copy.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.kind import Reading
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import properties, told_names
from selfattn.doctor.kinds.blocks.calling import prepare
from selfattn.doctor.kinds.blocks.handing_over import (
    OF_FLAGS,
    OF_MASKS,
    OF_PLACES,
    PLACES,
    PLACES_OF_EACH,
    Beside,
    wanted,
)
from selfattn.doctor.kinds.text_layouts import tried as in_layouts
from selfattn.doctor.patient import Facts

MOST = 3  # arguments of which nobody said what they are
Adapt = Callable[[Any, Facts], Callable[..., object]]


def read(
    seen: Reading, thing: nn.Module, told: Facts, adapt: Adapt, n_texts: int
) -> Reading:
    """The same reading, and what the block is handed besides.

    If its output depends on that, it may lie on the block's path.

    Args:
        seen: what was read off it, and the names of its masks.
        thing: the block.
        told: the facts that were told.
        adapt: calls a block by its facts.
        n_texts: how many it takes: x, and perhaps a context.
    """
    known = {"mask": "keep", **seen.facts, **told}
    masks = (known.get("mask_name"), known.get("own_mask"))
    texts = told_names.of(told, *told_names.TEXTS).values()
    by_name = [name for name in (*masks, *texts) if name]
    by_name += told.get("call") or ()
    names = wanted(thing, n_texts - len(texts), by_name)
    block = trial_calls.outcome(prepare, thing, known)
    if not 0 < len(names) <= MOST or block is None:
        return seen
    layouts = in_layouts(told.get("layout"))
    flags = ("on", "off") if told.get("causal") else ("off", "on")
    every = choices(names, n_texts, flags)
    for chosen, layout in product(every, layouts):
        facts = {**known, "layout": layout, "besides": chosen}
        call = adapt(block, facts)
        wide = trial_calls.outcome(properties.widths, block, call, n_texts > 1)
        if wide is not None:
            given = properties.texts(*wide).values()
            other = adapt(block, {**facts, "otherwise": True})
            said = (trial_calls.outcome(f, *given) for f in (call, other))
            free = {} if are_alike(*said) else {"path": "free"}
            return seen.with_facts(besides=chosen, **free)
    return seen


def choices(
    names: Sequence[str], n_texts: int, flags: Sequence[str]
) -> Iterator[dict[str, Beside]]:
    """What each of these is handed: a text, places of tokens, a flag, None.

    None comes first for masks, and places or ``flags`` for what is called so.
    """
    each = [tried(name, range(n_texts), flags) for name in names]
    for chosen in product(*each):
        yield dict(zip(names, chosen, strict=True))


def tried(
    name: str, texts: Iterable[int], flags: Sequence[str]
) -> tuple[Beside, ...]:
    """What one of these is handed, the likeliest first."""
    if OF_MASKS.search(name):
        return None, *texts
    if OF_FLAGS.search(name):
        return *flags, *texts, None
    numbered = (PLACES, PLACES_OF_EACH)
    if OF_PLACES.search(name):
        return *numbered, *texts, None
    return *texts, None


def are_alike(one: Any, other: Any) -> bool:
    """Whether two calls gave the same numbers."""
    both = isinstance(one, Tensor) and isinstance(other, Tensor)
    return both and torch.allclose(one, other)
