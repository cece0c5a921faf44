"""The inputs on which decoder blocks are compared."""

import torch
from torch import Tensor

from selfattn.doctor.probes import Probe, Sizes, in_other_order


def in_context(sizes: Sizes) -> Tensor:
    """A mask, (n, n_k): each sees two keys, round the end.

    Neither it nor its opposite has an empty row: there, even the two ways
    to call PyTorch's attention give different answers.
    """
    i = torch.arange(sizes["n"])[:, None]
    ahead = (torch.arange(sizes["n_k"]) - i) % sizes["n_k"]
    return ahead < 2


def of_width(d_model: int) -> tuple[Probe, ...]:
    """The inputs on which blocks are compared.

    Args:
        d_model: the width of the block's parts.
    """
    both = {"x": "batch n d", "context": "batch n_k d"}
    sizes = {"d": d_model}
    return (
        Probe("it is the three sublayers, added and normed", both, sizes),
        Probe(
            "its gradients are those of its parts", both, sizes, gradient=True
        ),
        Probe(
            "one token sees itself and the context", both, {**sizes, "n": 1}
        ),
        Probe(
            "a context as long as the text is no harder",
            both,
            {**sizes, "n_k": 5},
        ),
        Probe(
            "the order in memory does not matter",
            both,
            sizes,
            change=in_other_order,
        ),
        Probe(
            "of the context it sees what the mask allows",
            {**both, "mask": in_context},
            sizes,
            needs=("mask",),
        ),
    )
