"""How many axes the tokens have that a norm takes."""

import dataclasses
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.kind import Reading
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.norms.epsilon import EPS
from selfattn.doctor.kinds.norms.order import in_usual_order
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

    axes = trial_calls.wanted(call, facts.get("width", 7), least=1)
    if axes == 1:
        return reading
    lacks = {**reading.lacks, "single": "it takes no token alone"}
    more = reading.with_facts(axes=axes)
    return dataclasses.replace(more, lacks=lacks)
