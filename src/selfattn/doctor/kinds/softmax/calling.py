"""How softmax is called: over which axis, if it must be told."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.mask_meanings import TO_HIDE, as_meant
from selfattn.doctor.kinds.softmax.masked import of_texts
from selfattn.doctor.patient import Facts, handed, parameters
from selfattn.doctor.probes import numbers

AXES = ("dim", "axis")


MASKS = ("mask", "attn_mask", "lengths", "length", "seq_len", "lens")
SCORES = {"scores", "score", "logits", "logit"}  # even if they are masked
LIKE_MASKS = {"where", "visible", "valid", "allowed", "keep", "seen"}
FACTS = {
    "mask": Fact(
        "what its mask says, if it takes one",
        TO_HIDE,
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
    masked = mask_of(called, told)
    seen: dict[str, Any] = {"axis": names[0] if names else None}
    if of_scores := scores_of(called, masked):
        seen["scores"] = of_scores
    if masked is None:
        why = "it has no argument for it"
        lacks = {"mask": why, **with_its_axes(thing, seen)}
        return Reading({**seen, "mask": "keep"}, lacks=lacks)
    if "len" in masked and "mask" not in told:
        seen["mask"] = "lengths"
    seen["masked"] = masked
    seen["asked"] = is_asked_for(called, masked)
    if seen["asked"] and needs_it(thing, seen):
        seen["always"] = True
        seen |= meant_so(thing, {**seen, **told})
        return Reading(seen, has=("mask",))
    lacks = with_its_axes(thing, seen)
    if is_by_text(thing, seen):
        seen["by text"] = True
        lacks["rows"] = "it takes one row of a mask for each text"
    return Reading(seen, lacks=lacks, has=("mask",))


def mask_of(called: Any, told: Facts) -> str | None:
    """The name of its mask: told, or known, or of all others the only one."""
    if of_mask := dict(told.get("names") or {}).get("mask"):
        return str(of_mask)
    listed = [x for x in parameters(called) if may_be_mask(called, x)]
    masks = [name for name in MASKS if name in listed]
    masks += [x for x in listed if "mask" in x or "len" in x]
    masks += [x for x in listed if LIKE_MASKS & {*x.lower().split("_")}]
    if masks:
        return masks[0]
    others = [x for x in parameters(called) if x not in AXES][1:]
    if len(others) != 1:
        return None
    needed = told.get("mask") or is_asked_for(called, others[0])
    return others[0] if needed else None


def may_be_mask(called: Any, name: str) -> bool:
    """Whether scores are asked for besides, and it is not called so."""
    if SCORES & {*name.lower().split("_")}:
        return False
    asked = [
        p.name for p in trial_calls.listed(called) if p.default is p.empty
    ]
    return name not in asked or bool({*asked} - {name, *AXES})


def scores_of(called: Any, masked: str | None) -> str:
    """The name of the scores, where something else is taken before them."""
    listed = parameters(called)
    free = [x for x in listed if x not in (*AXES, masked)]
    return free[0] if free and free[0] != listed[0] else ""


def with_its_axes(thing: Any, seen: dict[str, Any]) -> dict[str, str]:
    """What it lacks, as it takes no scores of few axes; how many are noted."""
    call = adapt(thing, {**seen, "mask": "keep"})
    axes = trial_calls.wanted(call, 5)
    if axes > 2:
        seen["axes"] = axes
        return {"single": "it takes no row alone"}
    alone = trial_calls.takes(call, 5, 1) and not trial_calls.takes(call, 5, 2)
    if alone and "masked" not in seen:
        seen["axes"] = 1
        return {"batch": "it takes one row alone"}
    return {}


def is_by_text(thing: Any, seen: Facts) -> bool:
    """Whether its mask has one row for each text, (batch, n_k)."""
    if seen.get("mask") == "lengths" or seen.get("axes"):
        return False
    scores, mask = numbers(2, 3, 4), torch.ones(2, 3, 4, dtype=torch.bool)

    def fits(mask: Tensor) -> bool:
        for meaning in ("keep", "add"):
            given = {seen["masked"]: as_meant(mask, meaning, scores.dtype)}
            call = adapt(thing, {**seen, "mask": "keep", "named": given})
            made = trial_calls.outcome(call, scores)
            if isinstance(made, Tensor) and made.shape == scores.shape:
                return True
        return False

    return not fits(mask) and fits(mask[:, 0])


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


def needs_it(thing: Any, seen: Facts) -> bool:
    """Whether it cannot be called with None for a mask."""
    call = adapt(thing, {**seen, "mask": "keep"})
    every = (torch.zeros(2, 3, 4), torch.zeros(2, 1, 3, 4))
    return all(trial_calls.outcome(call, scores) is None for scores in every)


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with scores, and with the last axis if it asks for one."""

    def softmax(scores: Tensor, mask: Tensor | None = None) -> object:
        axis = facts.get("axis")
        given: dict[str, Any] = {axis: -1} if axis else {}
        if mask is None and facts.get("asked"):
            given[facts["masked"]] = None
        if mask is not None:
            meaning = facts["mask"]
            if facts.get("by text") or meaning == "lengths":
                mask = of_texts(mask)
            given[facts["masked"]] = as_meant(mask, meaning, scores.dtype)
        given |= facts.get("named", {})
        if facts.get("scores"):
            given[facts["scores"]] = scores
            return alone(handed(thing, **given), scores)
        return alone(handed(thing, scores, **given), scores)

    if facts.get("axes"):
        return of_axes(softmax, facts["axes"])
    return under_a_mask(softmax) if facts.get("always") else softmax


def alone(made: Any, scores: Tensor) -> object:
    """The weights, of what comes with the logarithms of their sums, say."""
    first = made[0] if isinstance(made, tuple) and len(made) == 2 else None
    weights = isinstance(first, Tensor) and first.shape == scores.shape
    return first if weights else made


def of_axes(softmax: Callable[..., Any], axes: int) -> Callable[..., object]:
    """Call it with scores of so many axes, and a mask of as many.

    Tables of texts stand for those of heads of one text each.
    """

    def called(scores: Tensor, mask: Tensor | None = None) -> object:
        if axes == 1:
            rows = scores.reshape(-1, scores.shape[-1])
            return torch.stack([softmax(row) for row in rows]).view_as(scores)
        if mask is None or axes <= scores.ndim:
            return trial_calls.lifted(softmax, axes)(scores, mask)
        made = softmax(scores[:, None], mask[:, None])
        whole = isinstance(made, Tensor) and made.ndim == axes
        return made[:, 0] if whole else made

    return called


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
