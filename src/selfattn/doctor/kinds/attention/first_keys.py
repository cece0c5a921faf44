"""The probes of attention of which lengths tell what is hidden.

Such a mask has no gaps: of the keys that it allows, as many come first.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from torch import Tensor

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kinds.attention.probes import needs
from selfattn.doctor.probes import Inputs, Probe, loud_first_key


@lru_cache(maxsize=64)  # so that its probes are the same ones, too
def without_gaps(exercise: Exercise) -> Exercise:
    """The same, asked with masks that lengths can say."""
    probes = tuple(allowed_first(probe) for probe in exercise.probes)
    return replace(exercise, probes=probes)


def allowed_first(probe: Probe) -> Probe:
    """A probe whose mask allows as many keys in each row, but first ones."""
    if "mask" not in probe.inputs:
        return probe
    made: Callable[..., Tensor] = probe.inputs["mask"]

    def mask(sizes: Any) -> Tensor:
        return made(sizes).sort(dim=-1, descending=True, stable=True).values

    loud = probe.change is loud_first_key
    change = loud_last_key if loud else probe.change
    inputs = {**probe.inputs, "mask": mask}
    moved = replace(probe, inputs=inputs, change=change)
    return replace(moved, needs=needs(moved))


def loud_last_key(inputs: Inputs) -> None:
    """Make the last key so long that, seen, it would drown the others."""
    inputs["k"][..., -1, :] *= 400
