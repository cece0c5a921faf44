"""What a mask says: in other conventions than ours, and back in ours."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercise import UnusableError
from selfattn.doctor.patient import Patient

MEANINGS = {
    "keep": "True allows",
    "block": "True forbids",
    "add": "it is added to the scores",
}
TO_HIDE = {  # what whoever hides keys may be told
    **MEANINGS,
    "lengths": "how many keys come before the padding",
}
OF_A_MAKER = {  # what a function that makes masks may return besides
    **MEANINGS,
    "ones": "1 allows, 0 forbids",
    "zeros": "0 allows, 1 forbids",
}


def as_meant(mask: Tensor, meaning: str, dtype: torch.dtype) -> Tensor:
    """A mask that is True where one may look, as others would say it.

    Numbers stay as they are: they are to be added.

    Raises:
        UnusableError: if lengths cannot say it.
    """
    if mask.is_floating_point():
        return mask.to(dtype)
    if meaning == "keep":
        return mask
    if meaning == "block":
        return ~mask
    if meaning == "lengths":
        return as_lengths(mask)
    added = torch.zeros(mask.shape, dtype=dtype)
    return added.masked_fill(~mask, -torch.inf)


def as_lengths(mask: Tensor) -> Tensor:
    """A mask as the number of keys that are seen, one for each of its rows.

    Raises:
        UnusableError: if what is seen does not come first.
    """
    lengths = mask.sum(dim=-1)
    first = torch.arange(mask.shape[-1]) < lengths[..., None]
    if not torch.equal(first, mask):
        raise UnusableError("it takes lengths, of what comes first")
    return lengths


def as_ours(mask: Any, meaning: str) -> object:
    """A mask in another convention as ours; as it is, if it is not in it."""
    if not isinstance(mask, Tensor) or meaning == "keep":
        return mask
    if meaning == "block":
        return ~mask if mask.dtype == torch.bool else mask
    low, high = {"add": (None, 0), "ones": (0, 1), "zeros": (1, 0)}[meaning]
    if mask.dtype == torch.bool:
        return mask.float()  # of the wrong type, which shall be seen
    allowed = mask == high
    forbidden = mask <= -1000 if low is None else mask == low
    return allowed if bool((allowed | forbidden).all()) else mask


def twice_or_louder(
    answer: Any, call: Callable[[Tensor], Any], n_q: int, n_k: int
) -> Tensor:
    """How far two keys alike are from one to which log 2 is added.

    That is nothing, if a mask's numbers are added to the scores, or if only
    zeros count, or only -inf. Whose mask is not added, who is no patient, or
    hides keys by himself, is not asked.

    Args:
        answer: what is asked.
        call: calls it with a mask, (n_q, n_k), on inputs whose first two
            keys are alike. Only the last query counts, which may see both.
        n_q: how many queries there are.
        n_k: how many keys there are.
    """
    nothing = torch.zeros(())
    facts = answer.facts if isinstance(answer, Patient) else {}
    own = any(facts.get(n) is not None for n in ("window", "table", "bias"))
    if facts.get("mask") != "add" or own or n_k < 3:
        return nothing
    both = torch.zeros(n_q, n_k)
    one = both.clone()
    one[:, 0], one[:, 1] = math.log(2), -math.inf
    plain, hidden = one.clone(), one.clone()
    plain[:, 0], hidden[:, 0] = 0, -math.inf
    said = call(one)[..., -1, :]
    masks = both, plain, hidden
    gaps = [(call(mask)[..., -1, :] - said).abs().max() for mask in masks]
    return nothing + round(float(gaps[0]), 3) * (min(gaps) > 1e-4)
