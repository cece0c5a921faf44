"""The inputs on which decoder blocks are compared."""

from torch import Tensor

from selfattn.doctor.deviations.number_types import of_types
from selfattn.doctor.kinds.blocks.probes import of_loud_tokens, round_the_end
from selfattn.doctor.probes import Probe, Sizes, in_other_order


def in_context(sizes: Sizes) -> Tensor:
    """A mask, (n, n_k): each sees two tokens of the context."""
    return round_the_end(sizes["n"], sizes["n_k"])


def of_width(d_model: int, d_context: int | None) -> tuple[Probe, ...]:
    """The inputs on which blocks are compared.

    Args:
        d_model: the width of the block's parts.
        d_context: that of the context.
    """
    both = {"x": "batch n d", "context": "batch n_k d_context"}
    sizes = {"d": d_model, "d_context": d_context or d_model}
    one, five = {**sizes, "n": 1}, {**sizes, "n_k": 5}
    return (
        Probe("it is the three sublayers, added and normed", both, sizes),
        Probe(
            "its gradients are those of its parts", both, sizes, gradient=True
        ),
        Probe("one token sees itself and the context", both, one),
        Probe("a context as long as the text is no harder", both, five),
        of_loud_tokens(both, sizes),
        Probe(
            "the order in memory does not matter",
            both,
            sizes,
            change=in_other_order,
            needs=("strides",),
        ),
        Probe(
            "of the context it sees what the mask allows",
            {**both, "mask": in_context},
            sizes,
            needs=("mask",),
        ),
        *of_types(both, sizes),
    )
