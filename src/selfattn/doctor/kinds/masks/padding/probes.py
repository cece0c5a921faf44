"""The probes of the kind `padding-mask`."""

from collections.abc import Callable
from dataclasses import replace

import torch

from selfattn.doctor.probes import Probe


def of(lengths: list[int], n: int) -> dict[str, Callable[..., object]]:
    """Lengths and width as the inputs of a probe."""
    return {"lengths": lambda _: torch.tensor(lengths), "n": lambda _: n}


OPTIONAL = {"empty": "texts without a token"}
WIDER = (
    Probe(
        "it is as wide as the batch, not as its longest text", of([2, 1], 7)
    ),
    Probe("one text alone will do", of([2], 3)),
)
PROBES = (
    Probe("of each text the first tokens are real", of([3, 5, 2], 5)),
    *WIDER,
    Probe("texts may all be full", of([3, 3], 3)),
    Probe("as many texts as tokens are no harder", of([2, 1, 3], 3)),
    # As wide as its longest text: who is told no width can be asked, too.
    Probe("a text may be empty", of([3, 0], 3), needs=("empty",)),
)

# Who is told lengths alone may be as wide as the longest of them.
OPTIONAL_ALONE = {
    "width": "a batch that is wider than its longest text",
    **OPTIONAL,
}
PROBES_ALONE = tuple(
    replace(p, needs=("width",)) if p in WIDER else p for p in PROBES
)
