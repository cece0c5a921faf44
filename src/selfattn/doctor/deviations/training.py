"""Whether a module that drops in training does, and only there."""

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
    if not share:
        return exercise
    probe = replace(
        exercise.probes[0],
        claim="in training, something is dropped",
        gradient=False,
        experiment=drops,
        tells=dropout_never_begins.name,
    )
    asked: tuple[Probe, ...] = (*exercise.probes, probe)
    known = (*exercise.deviations, dropout_never_begins)
    return replace(exercise, probes=asked, deviations=known)
