"""The probes of the kind `rope`: those of the exercise, and some more."""

import dataclasses
import functools
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercises.positions import rope as rotations
from selfattn.doctor.exercises.positions.rope import (
    EVEN,
    in_pairs,
    in_pairs_and_other_order,
)
from selfattn.doctor.probes import Inputs, Probe


def needed(probe: Probe) -> tuple[str, ...]:
    """What a probe asks for that not every function can do."""
    origin = probe.inputs["offset"]({})
    axes = len(str(probe.inputs["x"]).split())
    wanted = {
        "strides": probe.change is in_pairs_and_other_order,
        "single": axes == 2,
        "batch": axes == 3,
        "heads": axes == 4,
        "offset": origin > 0,
        "negative": origin < 0,
        str(probe.dtype).removeprefix("torch."): True,
    }
    return tuple(need for need in OPTIONAL if wanted.get(need))


OPTIONAL = {
    "strides": "features that do not lie side by side",
    "offset": "a first token that stands elsewhere than at 0",
    "negative": "positions below 0",
    "single": "one sequence without a batch",
    "batch": "a batch without heads",
    "heads": "a batch with heads",
    "float64": "float64",
    "bfloat16": "bfloat16",
}


# For those that can do neither a single sequence nor an offset.
WHOLE = Probe(
    "with heads, the first token stands at 0",
    {"x": "batch heads n d", "offset": lambda sizes: 0},
    EVEN,
    change=in_pairs,
)


def form(answer: Any, inputs: Inputs) -> Tensor:
    """A zero of the type that comes out."""
    output: Any = answer(*inputs.values())
    return output.new_zeros(1)


# A table that is kept has a type of its own, which what is turned may get.
TYPED = tuple(
    dataclasses.replace(
        WHOLE,
        claim=f"with heads, too, {str(dtype)[6:]} stays {str(dtype)[6:]}",
        dtype=dtype,
        experiment=form,
    )
    for dtype in (torch.float64, torch.bfloat16)
)
PROBES = tuple(
    dataclasses.replace(probe, needs=needed(probe))
    for probe in (*rotations.PROBES, WHOLE, *TYPED)
)


@functools.cache
def fitted(width: int | None, longest: int | None) -> tuple[Probe, ...]:
    """The probes, as wide as it is and as far as it counts."""
    return tuple(fit(probe, width, longest) for probe in PROBES)


def fit(probe: Probe, width: int | None, longest: int | None) -> Probe:
    """A probe, as wide as a patient is and as far as it counts."""
    if width is not None:
        sizes = {**probe.sizes, "d": width}
        probe = dataclasses.replace(probe, sizes=sizes, fixed=("d",))
    origin = probe.inputs["offset"]({})
    if longest is None or origin <= longest:
        return probe
    inputs = {**probe.inputs, "offset": lambda _: longest}
    return dataclasses.replace(probe, inputs=inputs)
