"""What a layer is held to: the formula of its own parts, or properties."""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.layer import probes, properties
from selfattn.doctor.kinds.layer.mistakes import (
    CONVENTIONS,
    MISTAKES,
    NO_MISTAKE,
    OF_A_CLAIM,
    TELLING,
)
from selfattn.doctor.kinds.layer.parts import Affine, Projections, projections
from selfattn.doctor.kinds.layer.reading import widths
from selfattn.doctor.kinds.layer.reference import Masks, Table, layer
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

ASKS = "attention by heads"
BY_NAME = ("mask", "padding", "causal")


def of(thing: Any, facts: Facts, cross: bool = False) -> Exercise:
    """Attention by heads with the module's own projections, or properties."""
    if facts.get("formula", "plain") == "own":
        d_model, d_context = widths(thing, facts)
        return of_properties(
            d_model, d_context, facts["causal"], cross, facts.get("table")
        )
    return of_module(
        thing,
        facts["n_heads"],
        facts["packed"],
        tuple(dict(facts.get("projections") or {}).items()),
        facts["causal"],
        cross,
        facts.get("table"),
    )


@lru_cache(maxsize=8)  # so that what its bank does is not done again
def of_module(
    module: nn.Module,
    n_heads: int,
    packed: str,
    names: tuple[tuple[str, str], ...],
    causal: bool,
    cross: bool,
    claimed: Table | None,
) -> Exercise:
    """The reference, probes and mistakes for one module, read in one way.

    Args:
        module: what holds the projections.
        n_heads: how many heads it has.
        packed: how one matrix holds queries, keys and values.
        names: those of its projections, where they were told.
        causal: whether it hides later tokens without being told to.
        cross: whether it looks at another sequence.
        claimed: of n_q and n_k, a mask that it keeps without being told to.
    """
    parts = projections(module, n_heads, packed, dict(names))
    if parts is None:
        raise UnclearError("Its heads do not divide its projections.")
    d_model, d_context = parts.q.W.shape[0], parts.k.W.shape[0]
    exercise = Exercise(
        "cross-attention" if cross else "self-attention",
        asks=ASKS,
        solution=layer,
        probes=probes.of_widths(d_model, d_context, cross),
        by_name=BY_NAME,
        mistakes=possible(MISTAKES, causal, claimed),
        optional=probes.OPTIONAL,
        conventions=CONVENTIONS,
    )
    return exercise.adapted(
        partial(as_layer, parts=parts, always=causal, claimed=claimed)
    )


@lru_cache(maxsize=8)
def of_properties(
    d_model: int,
    d_context: int,
    causal: bool,
    cross: bool,
    claimed: Table | None,
) -> Exercise:
    """A stand-in of that width, the probes, and the mistakes that show."""
    exercise = Exercise(
        "cross-attention" if cross else "self-attention",
        asks=ASKS,
        solution=layer,
        probes=properties.of_widths(d_model, d_context, cross),
        by_name=BY_NAME,
        mistakes=possible(TELLING, causal, claimed),
        optional={**probes.OPTIONAL, "numbers": "its numbers"},
    )
    parts = stand_in(d_model, d_context)
    return exercise.adapted(
        partial(as_layer, parts=parts, always=causal, claimed=claimed)
    )


def possible(
    mistakes: Iterable[Mistake], causal: bool, claimed: Table | None
) -> list[Mistake]:
    """Those that a layer can make which is causal or not, and claims or not.

    Args:
        mistakes: of which to choose.
        causal: whether it hides later tokens without being told to.
        claimed: of n_q and n_k, a mask that it keeps without being told to.
    """
    none = {NO_MISTAKE[causal], *(OF_A_CLAIM if claimed is None else ())}
    return [one for one in mistakes if one not in none]


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


def stand_in(d_model: int, d_context: int) -> Projections:
    """Some projections, of two heads where that divides the width."""

    def affine(d: int, seed: int) -> Affine:
        W = numbers(d, d_model, seed=seed) / d**0.5
        return Affine(W, None)

    widths = (d_model, d_context, d_context, d_model)
    q, k, v, out = (affine(d, seed=i) for i, d in enumerate(widths))
    n_heads = 2 if d_model % 2 == 0 else 1
    return Projections(q, k, v, out, n_heads, n_heads)
