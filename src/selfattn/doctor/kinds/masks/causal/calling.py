"""How makers of causal masks are called, and what their masks say."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.mask_meanings import OF_A_MAKER, as_ours
from selfattn.doctor.kinds.masks import arguments
from selfattn.doctor.kinds.masks.arguments import Form
from selfattn.doctor.patient import Facts, handed

BY_PLACE = Form((("n_q", "queries"), ("n_k", "keys")))

FACTS = {
    "mask": Fact("what the mask says", OF_A_MAKER),
    "alignment": Fact(
        "on which key the last, or the first, query sits",
        {
            "last": "the last on the last",
            "first": "the first on the first",
        },
        tried=False,
    ),
    "arguments": Fact(
        "how many numbers it takes, 1 or 2", saying=sayings.ONE_OR_TWO
    ),
}


def read(thing: Any, told: Facts) -> Reading:
    """What it is handed, and of which sizes it makes no table.

    Who cuts its rows out of a square, or puts zeros for the past before it,
    has none for queries that come before every key, and who builds it of
    lists has none without a row; and hardly anybody ever asks for one.
    """
    form = arguments.form_of(thing, told.get("arguments"))
    many = form.sizes if form else told.get("arguments", 0)
    seen: dict[str, Any] = {"arguments": many} if many else {}
    if form:
        seen["form"] = form
    if told.get("mask"):
        seen["told"] = True
    why = "it takes one number"
    lacks = {"length": why, "rowless": why} if many == 1 else {}
    if many != 1 and makes_no(thing, form, 7, 3):
        lacks["early"] = "of more queries than keys it makes no such table"
    if many != 1 and makes_no(thing, form, 0, 3):
        lacks["rowless"] = "of no queries it makes no such table"
    return Reading(seen, lacks=lacks)


def makes_no(thing: Any, form: Form | None, n_q: int, n_k: int) -> bool:
    """Whether there is no table for these sizes, but another, or an error."""
    form = form or BY_PLACE
    if form.past and n_q > n_k:
        return True
    made = trial_calls.as_tensor(arguments.tried(thing, form, n_q, n_k))
    return made is None or (
        isinstance(made, Tensor) and made.shape[-2:] != (n_q, n_k)
    )


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with what it takes; make its mask one of ours."""
    form = facts.get("form")

    def causal(n_q: int, n_k: int) -> object:
        if form:
            made = arguments.called(thing, form, n_q, n_k)
        else:
            sizes = (n_q, n_k)[: facts.get("arguments", 2)]
            made = handed(thing, *sizes)
        made = trial_calls.as_tensor(made)
        return as_ours(of_one_text(made, form or BY_PLACE), facts["mask"])

    return causal


def of_one_text(mask: Any, form: Form) -> Any:
    """A mask without the axes for batch and heads in front."""
    texts = any(role == "batch" for _, role in form.roles)
    while isinstance(mask, Tensor) and mask.ndim > 2:
        same = texts and len(mask) > 0 and bool((mask == mask[:1]).all())
        if len(mask) != 1 and not same:
            break
        mask = mask[0]
    return mask
