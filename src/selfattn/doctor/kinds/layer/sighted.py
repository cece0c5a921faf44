"""What a layer is held to whose numbers nobody knows: properties."""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations import scores
from selfattn.doctor.exercise import Exercise, Mistake, described
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.kinds.layer import (
    deviations,
    masks_seen,
    probes,
    properties,
)
from selfattn.doctor.kinds.layer.affine import Affine
from selfattn.doctor.kinds.layer.mistakes import (
    NO_MISTAKE,
    OF_A_CLAIM,
    TELLING,
    UNDER_NO_CLAIM,
    heads,
)
from selfattn.doctor.kinds.layer.parts import Projections
from selfattn.doctor.kinds.layer.reference import Masks, Table, layer
from selfattn.doctor.kinds.layer.width import width_out, widths
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

ASKS = "attention by heads"
BY_NAME = ("mask", "padding", "causal")


GIVEN_AWAY = (
    described(deviations.projection_not_used),
    described(scores.computed_in_half_precision),
    described(functions.computed_in_float32),
    heads.no_output_projection,
)


def by_sight(thing: Any, facts: Facts, cross: bool) -> Exercise:
    """What one is held to whose numbers nobody knows."""
    d_model, d_context = widths(thing, facts, cross)
    wide = d_model, d_context if cross else d_model
    d_out = width_out(thing, facts, *wide) if cross else d_model
    fine = "float64" in (facts.get("dtypes") or ())
    table = facts.get("table")
    return of_properties(*wide, d_out, facts["causal"], cross, table, fine)


@lru_cache(maxsize=8)
def of_properties(
    d_model: int,
    d_context: int,
    d_out: int,
    causal: bool,
    cross: bool,
    claimed: Table | None,
    fine: bool = False,
) -> Exercise:
    """A stand-in of that width, the probes, and the mistakes that show."""
    keeps: dict[str, Any] = {
        "d_model": d_model,
        "causal": causal,
        "table": claimed,
    }
    exercise = Exercise(
        "cross-attention" if cross else "self-attention",
        asks=ASKS,
        solution=layer,
        probes=properties.of_widths(d_model, d_context, cross, fine),
        by_name=BY_NAME,
        mistakes=possible(TELLING, causal, claimed),
        optional={**probes.OPTIONAL, "numbers": "its numbers"},
        deviations=(*GIVEN_AWAY, *masks_seen.KNOWN),
        hint=None if cross else partial(masks_seen.hint, **keeps),
    )
    parts = stand_in(d_model, d_context, d_out)
    return exercise.adapted(
        partial(as_layer, parts=parts, always=causal, claimed=claimed)
    )


def possible(
    mistakes: Iterable[Mistake], causal: bool, claimed: Table | None
) -> tuple[Mistake, ...]:
    """Those that a layer can make which is causal or not, and claims or not.

    Args:
        mistakes: of which to choose.
        causal: whether it hides later tokens without being told to.
        claimed: of n_q and n_k, a mask that it keeps without being told to.
    """
    other = OF_A_CLAIM if claimed is None else UNDER_NO_CLAIM
    none = {NO_MISTAKE[causal], *other}
    return tuple(one for one in mistakes if one not in none)


def as_layer(
    function: Callable[..., Any],
    parts: Projections,
    always: bool,
    claimed: Table | None = None,
) -> Callable[..., Any]:
    """A function of projections as a layer that has them."""

    def called(
        x: Tensor,
        context: Tensor | None = None,
        mask: Tensor | None = None,
        padding: Tensor | None = None,
        causal: bool = False,
        whole: bool = False,
    ) -> Any:
        masks = Masks(mask, padding, causal, always, claimed)
        context = x if context is None else context
        value = function(parts, x, context, masks)
        if whole:
            return (
                value if isinstance(value, tuple) else (value, torch.ones(1))
            )
        return value[0] if isinstance(value, tuple) else value

    return called


def stand_in(d_model: int, d_context: int, d_out: int) -> Projections:
    """Some projections, of two heads where that divides the width."""

    def affine(d: int, wide: int, seed: int) -> Affine:
        return Affine(numbers(d, wide, seed=seed) / d**0.5, None)

    widths = (d_model, d_context, d_context)
    q, k, v = (affine(d, d_model, seed=i) for i, d in enumerate(widths))
    out = affine(d_model, d_out, seed=3)
    n_heads = 2 if d_model % 2 == 0 else 1
    return Projections(q, k, v, out, n_heads, n_heads)
