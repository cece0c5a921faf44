"""Whether a module that drops in training does, and only there."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.patient import Patient
from selfattn.doctor.probes import Inputs, Probe

CALLS = 10  # in which something would be dropped, but for one in a million


@mistake
def dropout_never_begins():
    """In training, nothing is dropped.

    Cause: The dropout was made, and is not called; or it is told that it
        never trains.
    Cure: self.dropout(weights), or F.dropout(x, p, self.training).
    Chapter: dot_product
    """


@mistake
def another_share_is_dropped():
    """In training, another share is dropped than was said.

    Cause: What it was made with is not what was told; or it is 0, and drops
        nothing.
    Cure: Hand the share to where it is dropped, or say the one that is meant.
    Chapter: dot_product
    """


def shares_of(module: nn.Module) -> set[float]:
    """The shares that parts of it are made to drop, as far as they tell."""
    return {
        float(share)
        for part in module.modules()
        for name, share in vars(part).items()
        if "drop" in name or (name == "p" and is_dropout(part))
        if isinstance(share, int | float) and not isinstance(share, bool)
    }


def is_dropout(part: nn.Module) -> bool:
    """Whether it is one of PyTorch's layers that drop, or called so."""
    return "dropout" in type(part).__name__.lower()


def holds(share: float) -> Callable[..., Tensor]:
    """Whether it is made to drop a share, or does not tell which one."""

    def experiment(answer: Callable[..., Any], inputs: Inputs) -> Tensor:
        thing = answer.thing if isinstance(answer, Patient) else None
        found = shares_of(thing) if isinstance(thing, nn.Module) else set()
        some = [one for one in found if one > 0]  # others may drop elsewhere
        same = any(math.isclose(one, share, rel_tol=1e-6) for one in some)
        return torch.tensor(same or not some)

    return experiment


def drops(answer: Callable[..., Any], inputs: Inputs) -> Tensor:
    """Whether, in training, outputs differ from call to call."""
    if not isinstance(answer, Patient):
        return torch.tensor(True)
    if not isinstance(answer.thing, nn.Module):
        return torch.tensor(True)
    trained = replace(answer, thing=copy_of(answer.thing).train())
    first, *others = (trained(*inputs.values()) for _ in range(CALLS))
    return torch.tensor(any(not torch.equal(first, one) for one in others))


def with_dropout(exercise: Exercise, share: float | None) -> Exercise:
    """The exercise of one that was said to drop this share in training."""
    if share is None:
        return exercise
    first = replace(exercise.probes[0], gradient=False)
    asked: list[Probe] = [
        replace(
            first,
            claim="the share that it drops is the one that was told",
            experiment=holds(share),
            tells=another_share_is_dropped.name,
        )
    ]
    known = [another_share_is_dropped]
    if share > 0:
        begins = replace(
            first,
            claim="in training, something is dropped",
            experiment=drops,
            tells=dropout_never_begins.name,
        )
        asked.append(begins)
        known.append(dropout_never_begins)
    return replace(
        exercise,
        probes=(*exercise.probes, *asked),
        deviations=(*exercise.deviations, *known),
    )
