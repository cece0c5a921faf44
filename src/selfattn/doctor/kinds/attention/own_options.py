"""What is done otherwise with a scale, or with groups, of one's own."""

import torch
from torch import Tensor

from selfattn.doctor.deviations.design import Deviation, root
from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.dot_product import weights

GROUP = 2  # query heads to a head of keys, in what is asked of grouped ones


@mistake
def own_scale_not_used():
    """The scores are divided by √d, and not scaled as you say.

    Cause: The scale that was chosen is not handed on.
    Cure: Multiply the scores by it.
    Chapter: scaling
    """


def of_scale(scale: float) -> tuple[Deviation, ...]:
    """What is done otherwise with a scale of one's own."""
    return (
        Deviation({"scale": lambda width: scale**2}, weights.divided_by_d),
        *(
            Deviation(
                {"scale": lambda width, other=other: other},
                weights.multiplied_by_the_root,
            )
            for other in (1 / (scale or 1.0), 1 / (scale or 1.0) ** 2)
        ),
        Deviation({"scale": root}, own_scale_not_used),
    )


@mistake
def groups_in_another_order():
    """Each head of queries meets the keys of another group.

    Cause: The heads of keys are repeated one after the other, as `repeat`
        does, where neighbours should share one.
    Cure: k.repeat_interleave(group, dim=1).
    Chapter: multihead
    """


def one_after_the_other(x: Tensor) -> Tensor:
    """Heads that were repeated beside each other, in the order of `repeat`."""
    if x.ndim < 4:
        return x
    return torch.cat([x[:, n::GROUP] for n in range(GROUP)], dim=1)


GROUPS = tuple(
    Deviation(
        {
            "enter": lambda q, k, v, names=names: (
                q,
                one_after_the_other(k) if "k" in names else k,
                one_after_the_other(v) if "v" in names else v,
            )
        },
        groups_in_another_order,
    )
    for names in ("kv", "k", "v")
)
