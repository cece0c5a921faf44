"""How many tokens the texts of a block have, if it takes no other number.

Some mix tokens by a table, or fold their texts into time and space: for them
a text has one length. So it has for one that takes pictures, which are asked
of two rows of three. What a block takes is found by calls of a copy, where
nobody told it.
"""

from collections.abc import Callable
from typing import Any

from torch import nn

from selfattn.doctor.kind import Reading
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import calling, properties
from selfattn.doctor.kinds.layer.lengths import may_be_long, with_one
from selfattn.doctor.kinds.text_layouts import PICTURES, tried
from selfattn.doctor.patient import Facts

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
        for n in may_be_long(block, layout, told):
            if takes(layout=layout, length=n):
                return with_one(seen, {"layout": layout, "length": n})
    return seen
