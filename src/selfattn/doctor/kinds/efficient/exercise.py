"""What a mechanism is held to: what it claims to be, or properties."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from torch import Tensor

from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.kinds.efficient import needs, probes, properties
from selfattn.doctor.kinds.efficient.experiments import is_measured, measured
from selfattn.doctor.kinds.efficient.mistakes import (
    kernels,
    own_weights,
    tables,
    tiles,
)
from selfattn.doctor.patient import Facts
from selfattn.masks import window_mask


def for_every_claim(
    asks: str,
    solution: Callable[..., Tensor],
    mistakes: tuple[Mistake, ...],
    first_on_first: Mistake,
) -> Exercise:
    """An exercise whose answers are told what is claimed; see `of_claim`.

    Args:
        asks: what they claim, in a few words.
        solution: of (q, k, v, causal, claim), the right output.
        mistakes: wrong answers of the same arguments.
        first_on_first: the one of them that is a convention.
    """
    return Exercise(
        "efficient",
        asks,
        solution,
        probes.PROBES,
        by_name=("causal",),
        mistakes=list(mistakes),
        optional=needs.OF_A_CLAIM,
        conventions={"alignment": {"last": None, "first": first_on_first}},
    )


TILES = for_every_claim(
    "exactly attention", tiles.exact, tiles.MISTAKES, tiles.first_on_first
)
TABLES = for_every_claim(
    "attention under a mask",
    tables.under,
    tables.MISTAKES,
    tables.first_on_first,
)
KERNELS = for_every_claim(
    "attention with a kernel",
    kernels.linear,
    kernels.MISTAKES,
    kernels.first_on_first,
)
# By whether it hides later keys without a flag: what is then no mistake.
NO_MISTAKE = {
    True: own_weights.causal_flag_ignored,
    False: own_weights.not_causal,
}


def of(thing: Any, facts: Facts) -> Exercise:
    """The reference for what it claims, and the mistakes that are near."""
    if facts.get("formula") == "own":
        return of_properties(bool(facts.get("causal")))
    window, table = facts.get("window"), facts.get("table")
    if facts.get("kernel") is not None:
        return of_claim(KERNELS, facts["kernel"])
    if window is not None:
        return of_claim(TABLES, window_of(window))
    return of_claim(TABLES if table else TILES, table)


@lru_cache(maxsize=32)  # one object, so that its reference is one, too
def window_of(window: int) -> Callable[[int, int], Tensor]:
    """The table of a window."""
    return lambda n_q, n_k: window_mask(n_q, n_k, window)


@lru_cache(maxsize=32)
def of_claim(exercise: Exercise, claim: Any) -> Exercise:
    """The exercise for one claim: its table, its feature map, or None."""
    return exercise.adapted(partial(bound, claim=claim))


def bound(function: Callable[..., Any], claim: Any) -> Callable[..., Any]:
    """A function of (q, k, v, causal, claim) as a mechanism: of one claim."""

    def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Any:
        return function(q, k, v, causal, claim)

    return measured(attend) if is_measured(function) else attend


@lru_cache(maxsize=2)
def of_properties(always: bool) -> Exercise:
    """The exercise for all that claim nothing that can be computed.

    ``always`` is of one that hides later keys without a flag.
    """
    exercise = Exercise(
        "efficient",
        asks="an average of the values, at less cost",
        solution=own_weights.own,
        probes=properties.probes(always),
        by_name=("causal", "padding"),
        mistakes=[
            mistake
            for mistake in own_weights.MISTAKES
            if mistake is not NO_MISTAKE[always]
        ],
        optional=needs.OF_PROPERTIES,
    )
    return exercise.adapted(partial(as_mechanism, always=always))


def as_mechanism(
    function: Callable[..., Any], always: bool
) -> Callable[..., Any]:
    """A function as a mechanism that is, or is not, causal without a flag."""

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        causal: bool = False,
        padding: Tensor | None = None,
    ) -> Any:
        return function(q, k, v, causal or always, padding)

    return measured(attend) if is_measured(function) else attend
