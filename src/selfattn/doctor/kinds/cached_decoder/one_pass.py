"""A decoder's one pass: causal attention of its own projections, it may be.

Where that is so, its numbers are known after all.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.exercises.multihead.attention import input_added
from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.cached_decoder.probes import text
from selfattn.doctor.kinds.layer import exercise
from selfattn.doctor.kinds.layer.parts import HEADS, by_word, number
from selfattn.doctor.patient import Patient


def as_layer(patient: Any) -> tuple[Exercise, Callable[..., Tensor]] | None:
    """What a layer of its projections is held to, and the one pass.

    Of a stack it is that of the first attention in it.
    """
    thing = patient.thing if isinstance(patient, Patient) else None
    if not isinstance(thing, nn.Module):
        return None
    if not {"q", "qkv"} & by_word(thing, {}).keys():
        return None
    if not has_more(thing):
        return held(thing, once(thing, patient))
    part = first_inside(thing)
    if part is None:  # not "not part": some modules do not tell their truth
        return None
    call = as_called(part, patient)
    return None if call is None else held(part, call)


def held(
    thing: nn.Module, call: Callable[..., Tensor]
) -> tuple[Exercise, Callable[..., Tensor]] | None:
    """What a layer is held to, and how it is called; None if it is none."""
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
        call,
    )


def first_inside(thing: nn.Module) -> nn.Module | None:
    """The first part of a stack that is a layer of its own projections."""
    for part in thing.modules():
        named = part is not thing and {"q", "qkv"} & by_word(part, {}).keys()
        if named and not has_more(part):
            return part
    return None


def as_called(
    part: nn.Module, patient: Patient
) -> Callable[..., Tensor] | None:
    """A part as its stack calls it, if that is with tokens and no cache.

    Who hands it a mask, or places, hides or tells what the part does not.
    """
    calls: list[tuple[Any, Any]] = []
    hook = part.register_forward_pre_hook(
        lambda module, args, named: calls.append((args, named)),
        with_kwargs=True,
    )
    try:
        with torch.no_grad():
            patient(text(patient.facts.get("d_model")), None)
    except Exception:
        return None  # it fails, which is told elsewhere
    finally:
        hook.remove()
    args, named = calls[0] if calls else ((), {})
    given = [x for x in (*args, *named.values()) if isinstance(x, Tensor)]
    if len(given) != 1 or not (args and args[0] is given[0]):
        return None

    def answer(x: Tensor, **nothing: Any) -> Tensor:
        model = copy_of(part).to(x.dtype)
        output: Any = model(x, *args[1:], **named)
        first: Tensor = output[0] if isinstance(output, tuple) else output
        return first

    return answer


def has_more(thing: nn.Module) -> bool:
    """Whether there are matrices that are none of one layer's four.

    What a stack says is what no single layer of its projections says.
    """
    found = by_word(thing, {})
    own = {id(x) for one in found.values() for x in one.whole}
    return any(x.ndim > 1 and id(x) not in own for x in thing.parameters())


def is_one_here(known: Mistake) -> bool:
    """Whether a layer's mistake is one of a decoder, which may add its x."""
    both = (known, known.also or known)
    return all(one.name != input_added.name for one in both)


def once(thing: nn.Module, patient: Patient) -> Callable[..., Tensor]:
    """What it says of a whole text, in the text's own type."""

    def answer(x: Tensor, **nothing: Any) -> Tensor:
        model = thing
        if x.dtype != torch.float32:
            model = copy_of(thing).to(x.dtype)
        call = patient.adapt(model, patient.facts)
        output: Tensor = call(x, None)[0]  # type: ignore[index]
        return output

    return answer
