"""The probes of the kind `padding-mask`."""

from collections.abc import Callable

import torch

from selfattn.doctor.probes import Probe


def of(lengths: list[int], n: int) -> dict[str, Callable[..., object]]:
    """Lengths and width as the inputs of a probe."""
    return {"lengths": lambda _: torch.tensor(lengths), "n": lambda _: n}


OPTIONAL = {
    "width": "a batch that is wider than its longest text",
    "empty": "texts without a token",
}
PROBES = (
    Probe("of each text the first tokens are real", of([3, 5, 2], 5)),
    Probe(
        "it is as wide as the batch, not as its longest text",
        of([2, 1], 7),
        needs=("width",),
    ),
    Probe("texts may all be full", of([3, 3], 3)),
    Probe("one text alone will do", of([2], 3), needs=("width",)),
    Probe("as many texts as tokens are no harder", of([2, 1, 3], 3)),
    Probe("a text may be empty", of([2, 0], 3), needs=("empty", "width")),
)
