"""What the inputs of blocks share: a mask, loud tokens, other types."""

import torch
from torch import Tensor

from selfattn.doctor.deviations.number_types import TYPES
from selfattn.doctor.probes import Probe, Sizes, louder

OPTIONAL = {"strides": "tokens in another order of memory", **TYPES}


def round_the_end(n: int, n_k: int) -> Tensor:
    """A mask, (n, n_k): token i sees keys i and i + 1, round the end.

    Neither it nor its opposite has an empty row: there, even the two ways
    to call PyTorch's attention give different answers.
    """
    i = torch.arange(n)[:, None]
    return (torch.arange(n_k) - i) % n_k < 2


def of_loud_tokens(inputs: dict[str, str], sizes: Sizes) -> Probe:
    """A probe whose scores are so far apart that exponentials overflow."""
    return Probe(
        "loud tokens are no harder",
        inputs,
        sizes,
        change=louder("x", times=30.0),
        tolerance=0.05,
    )
