"""Where NaN begins in a decoder: at a token that is told nothing."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.exercise import name_of
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.kinds.cached_decoder import mistakes
from selfattn.doctor.kinds.cached_decoder.probes import at_once, written
from selfattn.doctor.patient import Patient

OTHERWISE = "otherwise"  # something is to be seen that has no name


def of_the_blind(patient: Patient, x: Tensor) -> str:
    """The name of the mask under which some token sees nothing at all.

    What comes of it is NaN, and spreads from layer to layer; so what counts
    is the first part that was given numbers and gave NaN.
    """
    said = written(patient, x, at_once(x))  # type: ignore[arg-type]
    rows = first_nan(patient, x)
    if rows is not None and rows.sum() == 1 and (rows[0] or rows[-1]):
        first = name_of(mistakes.not_itself_and_the_first_is_nan)
        return first if rows[0] else name_of(triangles.upside_down)
    return OTHERWISE if said.isnan().all() else ""


def first_nan(patient: Patient, x: Tensor) -> Tensor | None:
    """Which tokens are NaN, (n,), behind the first part that gives it."""
    found: list[Tensor] = []
    thing = patient.thing
    if not isinstance(thing, nn.Module):
        return None

    def look(module: nn.Module, given: Any, output: Any) -> None:
        bad = [y for y in tensors(output) if y.isnan().any()]
        if found or not bad or any(y.isnan().any() for y in tensors(given)):
            return
        found.append(bad[0].isnan().flatten(2).any(-1).any(0))

    hooks = [part.register_forward_hook(look) for part in thing.modules()]
    try:
        written(patient, x, at_once(x))  # type: ignore[arg-type]
    finally:
        for hook in hooks:
            hook.remove()
    return found[0] if found and len(found[0]) == x.shape[1] else None


def tensors(value: Any) -> Iterator[Tensor]:
    """The numbers of tokens, (batch, n, …), in what a part takes or gives."""
    if isinstance(value, Tensor):
        if value.is_floating_point() and value.ndim > 2:
            yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from tensors(one)
