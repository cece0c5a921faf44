"""What a probe may need, and a right mechanism that saves work may lack."""

import dataclasses
from collections.abc import Iterable, Mapping

from selfattn.doctor.exercises.dot_product.attention import QKV_HEADS
from selfattn.doctor.probes import Probe

TYPES = {name: name for name in ("float16", "bfloat16", "float64")}
# Of one that claims what can be computed: see `probes`.
OF_A_CLAIM = {
    "causal": "a causal flag",
    "length": "another number of keys than of queries",
    "width": "values of another width than keys",
    "single": "one sequence without a batch",
    "heads": "axes for batch and heads",
    **TYPES,
}
# Of one with weights of its own: see `properties`.
OF_PROPERTIES = {
    "causal": "a causal flag",
    "padding": "a mask for padding",
    "length": "another number of keys than of queries",
    "width": "values of another width than keys",
    "heads": "axes for batch and heads",
    **TYPES,
}


def with_needs(
    probes: Iterable[Probe], optional: Mapping[str, str]
) -> tuple[Probe, ...]:
    """The same probes, each with all that it needs of what is optional.

    A probe says what of that its inputs do not: another length, say. Its
    arguments and its number type speak for themselves.
    """
    return tuple(
        dataclasses.replace(
            probe,
            needs=tuple(need for need in optional if need in needs_of(probe)),
        )
        for probe in probes
    )


def needs_of(probe: Probe) -> set[str]:
    """What a probe asks for, whether it is optional or not."""
    asked = {*probe.needs, *probe.inputs}
    asked.add(str(probe.dtype).removeprefix("torch."))
    return asked | (
        {"heads"} if probe.inputs["q"] == QKV_HEADS["q"] else set()
    )
