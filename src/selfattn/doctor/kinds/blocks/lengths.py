"""How many tokens the texts of a block have, if it takes no other number.

Some mix tokens by a table, or fold their texts into time and space: for them
a text has one length. So it has for one that takes pictures, which are asked
of two rows of three. What a block takes is found by calls of a copy, where
nobody told it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from torch import nn

from selfattn.doctor.kind import Reading
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import calling, properties
from selfattn.doctor.kinds.layer.parts import HEADS, MODEL, WIDTHS
from selfattn.doctor.kinds.text_layouts import PICTURES, tried
from selfattn.doctor.patient import Facts

ROWS_OF_THREE, MOST = 6, 64
OTHERS = (*HEADS, *WIDTHS, *MODEL)  # in the names of what is no length
Adapt = Callable[[Any, Facts], Callable[..., object]]


def read(
    seen: Reading, thing: nn.Module, told: Facts, adapt: Adapt, n_texts: int
) -> Reading:
    """The same reading, and the one length that its texts have, if any.

    Args:
        seen: what was read off it, and the names of its masks.
        thing: the block.
        told: the facts that were told.
        adapt: calls a block by its facts.
        n_texts: how many it takes: x, and perhaps a context.
    """
    known = {"mask": "keep", **seen.facts, **told}
    block = trial_calls.outcome(calling.prepare, thing, known)
    if block is None:
        return seen

    def takes(**more: Any) -> bool:
        call = adapt(block, {**known, **more})
        across = n_texts > 1
        wide = trial_calls.outcome(properties.widths, block, call, across)
        told_so = "length" in told or more.get("layout") in PICTURES
        square = wide and wide.d_model == more.get("length") and not told_so
        return bool(wide) and not square

    texts = tried(known.get("layout"))
    if not PICTURES.keys() & {*texts} and any(
        takes(layout=layout) for layout in texts
    ):
        return seen if "length" not in told else with_one(seen, told)
    for layout in (*texts, *(PICTURES if len(texts) > 1 else ())):
        for n in lengths(block, layout, told):
            if takes(layout=layout, length=n):
                return with_one(seen, {"layout": layout, "length": n})
    return seen


def with_one(seen: Reading, known: Facts) -> Reading:
    """The same, of a block whose texts have one length."""
    why = f"it takes texts of {known['length']} tokens alone"
    why = "" if known.get("layout") in PICTURES else why
    lacks = {**seen.lacks, "length": why}
    return replace(seen.with_facts(**known), lacks=lacks)


def lengths(block: nn.Module, layout: str, told: Facts) -> Iterator[int]:
    """The lengths that its texts may have, the likeliest first.

    Of texts those that it was made for: by a table, or numbers that it keeps.
    """
    if "length" in told:
        yield told["length"]
    elif layout in PICTURES:
        yield from (ROWS_OF_THREE, *(n * n for n in range(2, 9)))
    else:
        every = {n for n in sizes_of(block) if 1 < n <= MOST}
        areas = {n * m for n in every for m in every}
        yield from sorted(n for n in every | areas if n <= MOST)


def sizes_of(block: nn.Module) -> set[int]:
    """The numbers that a block keeps, and how large its tables are.

    Not those of heads and widths: who takes as many tokens as it has heads
    has exchanged two axes.
    """
    kept: set[int] = set()
    other: set[int] = set()
    for part in block.modules():
        for name, n in vars(part).items():
            if type(n) is int:
                (other if name in OTHERS else kept).add(n)
    tables = [*block.parameters(), *block.buffers()]
    return kept | {n for table in tables for n in table.shape} - other
