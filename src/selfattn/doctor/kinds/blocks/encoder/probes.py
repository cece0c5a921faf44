"""The inputs on which encoder blocks are compared."""

from torch import Tensor

from selfattn.doctor.deviations.number_types import of_types
from selfattn.doctor.kinds.blocks.probes import of_loud_tokens, round_the_end
from selfattn.doctor.probes import Probe, Sizes, in_other_order


def among_themselves(sizes: Sizes) -> Tensor:
    """A mask, (n, n): each sees itself and the next."""
    return round_the_end(sizes["n"], sizes["n"])


def of_width(d_model: int, d_context: int | None = None) -> tuple[Probe, ...]:
    """The inputs on which blocks are compared.

    Args:
        d_model: the width of the block's parts.
        d_context: that of a context, of which there is none.
    """
    x, sizes = {"x": "batch n d"}, {"d": d_model}
    return (
        Probe("it is the two sublayers, each added and normed", x, sizes),
        Probe("its gradients are those of its parts", x, sizes, gradient=True),
        Probe("one token alone will do", x, {**sizes, "n": 1}),
        Probe(
            "as many sequences as tokens are no harder",
            x,
            {**sizes, "batch": 5},
        ),
        of_loud_tokens(x, sizes),
        *of_types(x, sizes),
        Probe(
            "the order in memory does not matter",
            x,
            sizes,
            change=in_other_order,
            needs=("strides",),
        ),
        Probe(
            "a token sees what the mask lets it see",
            {**x, "mask": among_themselves},
            sizes,
            needs=("mask",),
        ),
    )
