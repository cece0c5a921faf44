"""Which of two things that a layer must be given is its mask, by calls."""

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.layer import calling
from selfattn.doctor.kinds.layer.facts import FACTS
from selfattn.doctor.kinds.layer.inputs import (
    BATCH,
    N_Q,
    asked_for,
    is_to_hide,
    may_be_wide,
)
from selfattn.doctor.kinds.mask_meanings import MEANINGS
from selfattn.doctor.kinds.text_layouts import TEXTS
from selfattn.doctor.kinds.three_inputs import queries_keys_values
from selfattn.doctor.patient import Facts, parameters
from selfattn.doctor.probes import numbers

FEW = 6  # widths that are tried
HIDDEN = 1  # of the tokens; the first is all that a causal layer's first sees
NONE = dict.fromkeys(("mask", "padding", "causal", "context", "qkv"))


def x_and_mask(module: nn.Module, told: Facts) -> dict[str, str]:
    """The names of x and its mask, if two must be given and calls tell.

    Empty, if it is told, or as usual: x first, and a mask by its own name.
    """
    left = asked_for(module, told)
    known = {"x", "mask", "padding", "qkv"} & {*(told.get("names") or {})}
    if len(left) != 2 or known:
        return {}
    if queries_keys_values(parameters(module)):
        return {}
    if is_to_hide(left[1]) and not is_to_hide(left[0]):
        return {}
    for x, mask in (left, left[::-1]):
        if hides(trial_calls.alone(module), told, {"x": x, "mask": mask}):
            return {"x": x, "mask": mask}
    return {}


def hides(module: nn.Module, told: Facts, names: dict[str, str]) -> bool:
    """Whether one of two arguments hides keys of the other, in any way."""
    open_ = {
        "layout": [*TEXTS],
        "mask_axes": [*FACTS["mask_axes"].options],
        "mask": [*MEANINGS],
    }
    tried = [[told[n]] if n in told else ways for n, ways in open_.items()]
    for d, *way in product(may_be_wide(module)[:FEW], *tried):
        facts = dict(zip(open_, way, strict=True))
        more = {"call": told.get("call"), "names": {**NONE, **names}}
        if hides_a_key(calling.adapt(module, {**facts, **more}), d):
            return True
    return False


def hides_a_key(call: Callable[..., Any], d: int) -> bool:
    """Whether others hear of a token, and not if a mask of ours hides it."""
    x = numbers(BATCH, N_Q, d, seed=1)
    other = x.clone()
    other[:, HIDDEN] = 1 - other[:, HIDDEN]
    left = torch.arange(N_Q) != HIDDEN
    said = [
        trial_calls.outcome(call, text, mask=mask.expand(N_Q, -1))
        for mask in (left, torch.ones(N_Q).bool())
        for text in (x, other)
    ]
    if not all(isinstance(y, Tensor) and y.shape == x.shape for y in said):
        return False
    hidden, unheard, seen, heard = (y[:, left] for y in said)
    if not bool(hidden.isfinite().all()):
        return False
    return torch.allclose(hidden, unheard) and not torch.allclose(seen, heard)
