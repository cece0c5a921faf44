"""What is done otherwise with what is told of a formula, or with groups."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations.design import Deviation, product, root
from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.dot_product import weights
from selfattn.doctor.kinds.attention.formula import Formula, bent

GROUP = 2  # query heads to a head of keys, in what is asked of grouped ones


@mistake
def own_scale_not_used():
    """The scores are divided by √d, and not scaled as you say.

    Cause: The scale that was chosen is not handed on.
    Cure: Multiply the scores by it.
    Chapter: scaling
    """


@mistake
def own_cap_not_used():
    """Scores are not capped as you say.

    Cause: The cap is told, and the scores go to the softmax as they are.
    Cure: cap * torch.tanh(scores / cap), before the mask.
    Chapter: scaling
    """


@mistake
def own_bias_not_added():
    """What you say is added to the scores is not added.

    Cause: The bias is made, or told, and not used; or it has the wrong sign.
    Cure: scores + bias, before the softmax.
    Chapter: positions
    """


@mistake
def cosine_not_used():
    """Products are compared, and not cosines, as you say.

    Cause: Queries and keys are not normalised.
    Cure: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
    Chapter: scaling
    """


def of_scale(scale: float) -> tuple[Deviation, ...]:
    """What is done otherwise with a scale of one's own."""
    return (
        # First: by chance another may be the same, such as 1/2 at four.
        Deviation({"scale": root}, own_scale_not_used),
        Deviation({"scale": lambda width: scale**2}, weights.divided_by_d),
        *(
            Deviation(
                {"scale": lambda width, other=other: other},
                weights.multiplied_by_the_root,
            )
            for other in (1 / (scale or 1.0), 1 / (scale or 1.0) ** 2)
        ),
    )


def of_own(formula: Formula) -> tuple[Deviation, ...]:
    """What was told of a formula, and is left out or turned round."""
    found = list(of_scale(formula.scale)) if formula.scale is not None else []

    def otherwise(known: Callable[..., object], **told: Any) -> Deviation:
        changed = replace(formula, **told)
        return Deviation({"bend": lambda table: bent(table, changed)}, known)

    if formula.cap is not None:
        found.append(otherwise(own_cap_not_used, cap=None))
    if (bias := formula.bias) is not None:
        found.append(otherwise(own_bias_not_added, bias=None))
        less = otherwise(own_bias_not_added, bias=lambda *n: -bias(*n))
        found.append(less)
    if formula.cosine:
        scale = {} if formula.scale is not None else {"scale": root}
        found.append(Deviation({"compare": product, **scale}, cosine_not_used))
    return tuple(found)


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
