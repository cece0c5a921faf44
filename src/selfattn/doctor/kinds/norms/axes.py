"""Which axes the tokens have that a norm takes, and how many."""

import dataclasses
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.kind import Reading
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.norms.epsilon import EPS
from selfattn.doctor.kinds.norms.order import in_usual_order
from selfattn.doctor.kinds.norms.pictures import Call, laid_out_for
from selfattn.doctor.kinds.text_layouts import PICTURES
from selfattn.doctor.patient import handed, parameters


def with_its_axes(reading: Reading, thing: Any) -> Reading:
    """A reading, with the number of axes that it wants, if not any."""
    facts = reading.facts
    learnt = [torch.ones(7), torch.zeros(7)]
    many = facts.get("learns", len(learnt))
    norm = in_usual_order(thing)

    def call(x: Tensor) -> Any:
        if isinstance(thing, nn.Module):
            return handed(copy_of(thing), x)
        names = [n for n in parameters(norm)[1:] if n not in EPS][:many]
        eps = [1e-5] * bool({*parameters(norm)} & {*EPS})
        return norm(x, *learnt[: len(names)], *eps)

    width = facts.get("width", 7)
    if not any(trial_calls.takes(call, width, n) for n in range(1, 5)):
        return in_a_picture(reading, call, width)
    axes = trial_calls.wanted(call, width, least=1)
    if axes == 1:
        return reading
    lacks = {**reading.lacks, "single": "it takes no token alone"}
    more = reading.with_facts(axes=axes)
    return dataclasses.replace(more, lacks=lacks)


def in_a_picture(reading: Reading, call: Call, width: int) -> Reading:
    """A reading of one that takes no text, if it takes pictures."""
    for layout in PICTURES:
        if trial_calls.takes(laid_out_for(call, layout), width, axes=3):
            return reading.with_facts(layout=layout)
    return reading
