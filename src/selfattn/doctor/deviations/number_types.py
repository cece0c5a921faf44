"""Whether a module in another number type answers in that type."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.patient import Patient
from selfattn.doctor.probes import Inputs, Probe, Sizes

TYPES = {"float64": "float64", "bfloat16": "bfloat16"}


def type_kept(answer: Any, inputs: Inputs) -> Tensor:
    """A zero of the type in which a module of the input's type answers."""
    x: Tensor = inputs["x"]
    if not isinstance(answer, Patient):
        return x.new_zeros(1)
    if not isinstance(answer.thing, nn.Module):
        return x.new_zeros(1)
    other = replace(answer, thing=copy_of(answer.thing).to(x.dtype))
    with torch.no_grad():
        output: Any = other(*inputs.values())
    return output.new_zeros(1)


def of_types(
    inputs: dict[str, str],
    sizes: Sizes,
    fixed: tuple[str, ...] = (),
    names: Iterable[str] = TYPES,
) -> Iterator[Probe]:
    """Whether a module in another type answers in that type."""
    for name in names:
        yield Probe(
            f"in {name} it answers in {name}",
            inputs,
            sizes,
            dtype=getattr(torch, name),
            fixed=fixed,
            needs=(name,),
            experiment=type_kept,
        )
