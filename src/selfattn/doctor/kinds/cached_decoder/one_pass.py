"""A decoder's one pass: causal attention of its own projections, it may be.

Where that is so, its numbers are known after all.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.exercises.multihead.attention import input_added
from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.layer import exercise
from selfattn.doctor.kinds.layer.parts import HEADS, by_word, number
from selfattn.doctor.patient import Patient


def as_layer(patient: Any) -> tuple[Exercise, Callable[..., Tensor]] | None:
    """What a layer of its projections is held to, and the one pass."""
    thing = patient.thing if isinstance(patient, Patient) else None
    if not isinstance(thing, nn.Module):
        return None
    if not {"q", "qkv"} & by_word(thing, {}).keys():
        return None
    facts = {
        "n_heads": number(thing, HEADS) or 1,
        "packed": "by part",
        "causal": True,
    }
    try:
        of_layer = exercise.of(thing, facts)
    except (UnclearError, RuntimeError, IndexError):
        return None
    plain = tuple(
        probe
        for probe in of_layer.probes
        if not probe.needs and not probe.experiment
    )
    return (
        replace(
            of_layer,
            probes=plain,
            mistakes=tuple(filter(is_one_here, of_layer.mistakes)),
            deviations=tuple(filter(is_one_here, of_layer.deviations)),
            second=lambda: filter(is_one_here, of_layer.second()),
        ),
        once(thing, patient),
    )


def is_one_here(known: Mistake) -> bool:
    """Whether a layer's mistake is one of a decoder, which may add its x."""
    both = (known, known.also or known)
    return all(one.name != input_added.name for one in both)


def once(thing: nn.Module, patient: Patient) -> Callable[..., Tensor]:
    """What it says of a whole text, in the text's own type."""

    def answer(x: Tensor, **nothing: Any) -> Tensor:
        model = thing
        if x.dtype != torch.float32:
            model = copy.deepcopy(thing).to(x.dtype)
        call = patient.adapt(model, patient.facts)
        output: Tensor = call(x, None)[0]  # type: ignore[index]
        return output

    return answer
