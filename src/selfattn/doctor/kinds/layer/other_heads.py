"""A layer that has another number of heads than was told."""

from collections.abc import Callable

from torch import Tensor

from selfattn.doctor.deviations.design import Deviation
from selfattn.doctor.exercise import mistake
from selfattn.multihead import split_heads


@mistake
def another_number_of_heads():
    """The features are cut into more heads than you say, or into fewer.

    Cause: The number of heads is not handed on, or it is told wrong.
    Cure: Look where the heads are split; or tell n_heads as it is.
    Chapter: multihead
    """


def cut_into(n_heads: int) -> Callable[[Tensor, int], Tensor]:
    """Split into so many heads, whatever is asked for, where that divides."""

    def cut(x: Tensor, asked: int) -> Tensor:
        fits = x.shape[-1] % n_heads == 0
        return split_heads(x, n_heads if fits else asked)

    return cut


OTHER_HEADS = tuple(
    Deviation(
        dict.fromkeys(("split_q", "split_k", "split_v"), cut_into(n)),
        another_number_of_heads,
    )
    for n in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)
)
