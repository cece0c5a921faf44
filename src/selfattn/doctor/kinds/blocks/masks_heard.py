"""What a mask says to a block: nobody hears of what it hides, by calls."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.kind import Kind, Reading
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks.axes_heard import given_to
from selfattn.doctor.kinds.mask_meanings import MEANINGS
from selfattn.doctor.patient import Facts

HIDDEN = 1  # the first would leave nothing to see, where later ones are hidden


def with_meanings(
    kind: Kind, block: Any, told: Facts, seen: Reading
) -> Reading:
    """A reading with those meanings of a mask alone that hide something.

    Where a block's attention lies in its forward no number tells them apart:
    what it is compared with reads a mask as it does.
    """
    known = {**seen.facts, **told}
    if "mask" in known or not known.get("mask_name"):
        return seen
    fit = [m for m in MEANINGS if hides(kind, block, {**known, "mask": m})]
    open_ = {**seen.candidates, "mask": fit or [*MEANINGS]}
    return replace(seen, candidates=open_)


def hides(kind: Kind, block: Any, known: Facts) -> bool:
    """Whether nobody else hears of a token that a mask hides from all."""
    call = kind.adapt(block, known)
    given = given_to(block, call)
    if given is None:
        return False
    *before, seen = given.values()
    other = seen.clone()
    other[:, HIDDEN] = 1 - other[:, HIDDEN]
    sees = torch.arange(seen.shape[1]) != HIDDEN
    mask = sees.expand(next(iter(given.values())).shape[1], -1)
    pair = [
        trial_calls.outcome(call, *before, one, mask=mask)
        for one in (seen, other)
    ]
    if not all(isinstance(said, Tensor) for said in pair):
        return False
    left = slice(None) if before else sees
    one, another = (said[:, left] for said in pair)
    return torch.allclose(one, another)
