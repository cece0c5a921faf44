"""How softmax is called: over which axis, if it must be told."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.mask_meanings import MEANINGS, as_meant
from selfattn.doctor.kinds.softmax.masked import as_lengths
from selfattn.doctor.patient import Facts, handed, parameters
from selfattn.doctor.probes import numbers

AXES = ("dim", "axis")


MASKS = ("mask", "attn_mask", "lengths", "length", "seq_len", "lens")
FACTS = {
    "mask": Fact(
        "what its mask says, if it takes one",
        {**MEANINGS, "lengths": "how many keys each text has"},
        need="mask",
    ),
    "names": Fact(
        "its name for a mask, as a dict", saying=sayings.names_for("mask")
    ),
    "axis": Fact(
        "the name of the argument that says over which axis",
        saying=sayings.NAME,
    ),
    "empty_row": Fact(
        "what a row becomes in which all is forbidden",
        {
            "nan": "NaN",
            "zeros": "zeros",
            "average": "all weights alike",
        },
        tried=False,
    ),
}


def read(thing: Any, told: Facts) -> Reading:
    """The name of its axis, if it must be told one."""
    called = thing.forward if isinstance(thing, nn.Module) else thing
    names = [name for name in AXES if name in parameters(called)]
    listed = parameters(called)
    masks = [name for name in MASKS if name in listed]
    masks += [x for x in listed[1:] if "mask" in x or "len" in x]
    of_mask = dict(told.get("names") or {}).get("mask")
    masked = of_mask or (masks[0] if masks else None)
    seen: dict[str, Any] = {"axis": names[0] if names else None}
    if masked is None:
        why = "it has no argument for it"
        return Reading({**seen, "mask": "keep"}, lacks={"mask": why})
    if "len" in masked and "mask" not in told:
        seen["mask"] = "lengths"
    seen["masked"] = masked
    seen["asked"] = is_asked_for(called, masked)
    if seen["asked"] and needs_it(thing, seen, masked):
        seen["always"] = True
        seen |= meant_so(thing, {**seen, **told})
    return Reading(seen, has=("mask",))


def meant_so(thing: Any, facts: Facts) -> Facts:
    """What its mask says, if under one that forbids nothing it is right."""
    scores = numbers(2, 3, 4)
    for meaning in (
        [facts["mask"]] if facts.get("mask") else FACTS["mask"].options
    ):
        call = adapt(thing, {**facts, "mask": meaning})
        output = trial_calls.outcome(call, scores)
        if not isinstance(output, Tensor) or output.shape != scores.shape:
            continue
        if torch.allclose(output.float(), scores.softmax(-1), atol=1e-4):
            return {"mask": meaning}
    return {}


def is_asked_for(called: Any, masked: str) -> bool:
    """Whether something has to be handed over for a mask, if only None."""
    try:
        listed = inspect.signature(called).parameters
    except (TypeError, ValueError):
        return False
    nothing = inspect.Parameter.empty
    return masked in listed and listed[masked].default is nothing


def needs_it(thing: Any, seen: Facts, masked: str) -> bool:
    """Whether it cannot be called with None for a mask."""
    axis = {seen["axis"]: -1} if seen["axis"] else {}
    scores, none = torch.zeros(2, 3, 4), {masked: None}
    return trial_calls.outcome(handed, thing, scores, **axis, **none) is None


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with scores, and with the last axis if it asks for one."""

    def softmax(scores: Tensor, mask: Tensor | None = None) -> object:
        axis = facts.get("axis")
        given: dict[str, Any] = {axis: -1} if axis else {}
        if mask is None and facts.get("asked"):
            given[facts["masked"]] = None
        if mask is not None:
            meaning = facts["mask"]
            given[facts["masked"]] = (
                as_lengths(mask)
                if meaning == "lengths"
                else as_meant(mask, meaning, scores.dtype)
            )
        return handed(thing, scores, **given)

    return under_a_mask(softmax) if facts.get("always") else softmax


def under_a_mask(softmax: Callable[..., Any]) -> Callable[..., object]:
    """Give it a mask always: one that forbids nothing, if none is given.

    Masks are of tables in a batch, and so are the scores beside it.
    """

    def masked(scores: Tensor, mask: Tensor | None = None) -> object:
        if mask is not None:
            return softmax(scores, mask)
        tables = scores.reshape(-1, *scores.shape[-2:])
        if scores.ndim == 1:
            tables = scores[None, None]
        allowed = torch.ones(tables.shape, dtype=torch.bool)
        output = softmax(tables, allowed)
        same = isinstance(output, Tensor) and output.shape == tables.shape
        return output.reshape(scores.shape) if same else output

    return masked
