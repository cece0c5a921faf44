"""What the inputs of blocks share: a mask, loud tokens, other types."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.patient import Patient
from selfattn.doctor.probes import Inputs, Probe, Sizes, louder

TYPES = {"float64": "float64", "bfloat16": "bfloat16"}


def round_the_end(n: int, n_k: int) -> Tensor:
    """A mask, (n, n_k): token i sees keys i and i + 1, round the end.

    Neither it nor its opposite has an empty row: there, even the two ways
    to call PyTorch's attention give different answers.
    """
    i = torch.arange(n)[:, None]
    return (torch.arange(n_k) - i) % n_k < 2


def of_loud_tokens(inputs: dict[str, str], sizes: Sizes) -> Probe:
    """A probe whose scores are so far apart that exponentials overflow."""
    return Probe(
        "loud tokens are no harder",
        inputs,
        sizes,
        change=louder("x", times=30.0),
        tolerance=0.05,
    )


def type_kept(answer: Any, inputs: Inputs) -> Tensor:
    """A zero of the type in which a block of the input's type answers."""
    x: Tensor = inputs["x"]
    if not isinstance(answer, Patient):
        return x.new_zeros(1)
    if not isinstance(answer.thing, nn.Module):
        return x.new_zeros(1)
    other = replace(answer, thing=copy.deepcopy(answer.thing).to(x.dtype))
    with torch.no_grad():
        output: Any = other(*inputs.values())
    return output.new_zeros(1)


def of_types(inputs: dict[str, str], sizes: Sizes) -> Iterator[Probe]:
    """Whether a block in another type answers in that type."""
    for name in TYPES:
        yield Probe(
            f"in {name} it answers in {name}",
            inputs,
            sizes,
            dtype=getattr(torch, name),
            needs=(name,),
            experiment=type_kept,
        )
