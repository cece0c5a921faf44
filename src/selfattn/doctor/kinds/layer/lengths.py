"""The one length that the texts of a layer have, or its pictures.

Some mix tokens by a table, or fold a text into time and space: they take no
other length. What one takes is found by calls of a copy, where nobody told.
"""

from collections.abc import Iterator
from dataclasses import replace

from torch import nn

from selfattn.doctor.kind import Reading
from selfattn.doctor.kinds.layer.parts import HEADS, MODEL, WIDTHS
from selfattn.doctor.kinds.layer.width import is_called
from selfattn.doctor.kinds.text_layouts import PICTURES, tried
from selfattn.doctor.patient import Facts

ROWS_OF_THREE, MOST = 6, 64
OTHERS = (*HEADS, *WIDTHS, *MODEL)  # in the names of what is no length


def read(
    seen: Reading, module: nn.Module, known: Facts, cross: bool
) -> Reading:
    """The same reading, and the one length that its texts have, if any.

    Args:
        seen: what was read off it.
        module: what is called.
        known: what is told, and read off.
        cross: whether it takes a context.
    """
    texts = tried(known.get("layout"))
    pictures = PICTURES.keys() & {*texts}
    if not pictures and "length" not in known:
        if is_called(module, known, cross):
            return seen
        texts += [*PICTURES] if len(texts) > 1 else []
    for layout in texts:
        for n in may_be_long(module, layout, known):
            one = {"layout": layout, "length": n}
            if is_called(module, {**known, **one}, cross):
                return with_one(seen, one)
    return seen


def with_one(seen: Reading, known: Facts) -> Reading:
    """The same, of a block whose texts have one length."""
    why = f"it takes texts of {known['length']} tokens alone"
    why = "" if known.get("layout") in PICTURES else why
    lacks = {**seen.lacks, "length": why}
    return replace(seen.with_facts(**known), lacks=lacks)


def may_be_long(block: nn.Module, layout: str, told: Facts) -> Iterator[int]:
    """The lengths that its texts may have, the likeliest first.

    Those that it was made for, by a table, or numbers that it keeps.
    """
    if "length" in told:
        yield told["length"]
        return
    every = {n for n in sizes_of(block) if 1 < n <= MOST}
    areas = {n * m for n in every for m in every}
    if layout in PICTURES:
        yield ROWS_OF_THREE
        every = set()
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
