"""How a block goes wrong whose sublayers stand side by side."""

from selfattn.doctor.deviations.design import Deviation
from selfattn.doctor.exercise import mistake
from selfattn.doctor.kinds.blocks.joining import ENCODER


@mistake
def one_after_the_other():
    """The second sublayer sees what the first one found, and should not.

    Cause: x = x + attention(norm(x)), and then x + network(norm(x)).
    Cure: In a parallel block both are given the block's input.
    Chapter: layers
    """


SIDE_BY_SIDE = (
    *(one for one in ENCODER if not {"apart", "order"} & one.steps.keys()),
    Deviation({"apart": False}, one_after_the_other),
)
