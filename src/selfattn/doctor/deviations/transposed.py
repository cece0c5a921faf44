"""Outputs whose axes are exchanged: a transpose too many, or too few."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

from torch import Tensor

from selfattn.doctor.deviations.design import Deviation
from selfattn.doctor.exercise import mistake


@mistake
def axes_in_another_order():
    """The numbers are right, and axes are exchanged.

    Cause: The last step puts the axes in another order: a transpose too many
        or too few, or the letters behind the arrow of an einsum.
    Cure: The axes in which the values came.
    """


def exchanged(axes: tuple[int, ...]) -> Callable[[Tensor, Any], Tensor]:
    """Put the axes of an output in this order, if it has so many."""

    def leave(output: Tensor, width: Any) -> Tensor:
        return output.permute(axes) if output.ndim == len(axes) else output

    return leave


ALL = tuple(
    Deviation({"leave": exchanged(axes)}, axes_in_another_order)
    for many in (4, 3)
    for axes in permutations(range(many))
    if axes != tuple(range(many))
)
