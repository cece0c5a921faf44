"""What a mechanism is held to: what it claims to be, or properties."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.deviations import hiding, own_masks
from selfattn.doctor.deviations.design import (
    Design,
    pairs,
    singles,
)
from selfattn.doctor.exercise import Exercise, Mistake, mistake, mistake_as
from selfattn.doctor.kinds.attention import sight, variants
from selfattn.doctor.kinds.attention.formula import Formula, design
from selfattn.doctor.kinds.attention.variants import (
    ALWAYS_CAUSAL,
    NEVER_CAUSAL,
    in_layout,
)
from selfattn.doctor.kinds.efficient import (
    needs,
    probes,
    properties,
    weights_seen,
)
from selfattn.doctor.kinds.efficient.experiments import is_measured, measured
from selfattn.doctor.kinds.efficient.feature_maps import alike, claimed
from selfattn.doctor.kinds.efficient.kernel_steps import holds, taken_apart
from selfattn.doctor.kinds.efficient.mistakes import (
    kernels,
    own_weights,
    tables,
    tiles,
)
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import Probe
from selfattn.dot_product import attention
from selfattn.efficient.linear import elu_plus_one
from selfattn.masks import causal_mask, window_mask


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
        mistakes=tuple(mistakes),
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
    if facts.get("masked"):
        return under_masks(thing, facts)
    window, table = facts.get("window"), facts.get("table")
    always = bool(facts.get("causal"))
    layout = facts.get("layout", "any")
    if facts.get("formula") == "linear":
        return of_claim(KERNELS, alike(elu_plus_one), always, layout)
    if (maps := claimed(facts)) is not None:
        return of_claim(KERNELS, maps, always, layout)
    if window is not None:
        return of_claim(TABLES, window_of(window), always, layout)
    return of_claim(TILES if table is None else TABLES, table, always, layout)


def under_masks(thing: Any, facts: Facts) -> Exercise:
    """What any attention under masks is held to, and that it saves work."""
    made = variants.of(thing, facts)
    saves = tuple(p for p in probes.PROBES if p.experiment is not None)
    return replace(
        made,
        name="efficient",
        probes=(*made.probes, *saves),
        mistakes=(*made.mistakes, makes_the_whole_table),
    )


@mistake_as(tables.the_whole_table_is_made)
@measured
def makes_the_whole_table(q, k, v, mask=None, causal=False):
    """All scores are made before they are hidden."""
    return attention(q, k, v, mask=mask, causal=causal)


@lru_cache(maxsize=32)  # one object, so that its reference is one, too
def window_of(window: int) -> Callable[[int, int], Tensor]:
    """The table of a window."""
    return lambda n_q, n_k: window_mask(n_q, n_k, window)


@lru_cache(maxsize=32)
def of_claim(
    exercise: Exercise, claim: Any, always: bool, layout: str = "any"
) -> Exercise:
    """The exercise for one claim: its table, its feature maps, or None.

    ``always`` is of one that hides later keys without a flag.
    """
    made = exercise.adapted(partial(bound, claim=claim, always=always))
    kernel = claim if exercise is KERNELS else None
    if exercise is KERNELS:
        made = replace(made, **taken_apart(claim, always, layout))
        held = tuple(p for p in made.probes if reached_by(claim, p))
        made = replace(made, probes=held)
    else:
        made = replace(made, **of_scores(claim, always, layout))
    table = claim if exercise is TABLES else None
    return with_a_hint(made, table, kernel, always)


def reached_by(kernel: Any, probe: Probe) -> bool:
    """Whether a probe asks what a feature map can tell, if it is loud."""
    loud = probe.tolerance is not None and probe.dtype == torch.float32
    return not loud or holds(kernel, probe)


def with_a_hint(
    made: Exercise, table: Any, kernel: Any, always: bool
) -> Exercise:
    """The same, and what is to be seen where no numbers tell."""
    past = causal_mask if always and table is None else table
    known = *made.deviations, *sight.told_by_sight(own_weights.not_causal)
    return replace(
        made,
        deviations=(*known, *weights_seen.KNOWN),
        hint=partial(seen, past=past, kernel=kernel),
    )


def seen(attend: Callable[..., Any], past: Any, kernel: Any = None) -> str:
    """What is to be seen of a mechanism: its weights, or who sees whom.

    But first whether texts and heads are each for itself: the weights of one
    alone say nothing of that.
    """
    others = {"future": own_weights.not_causal, "first": first_tile_left_out}
    with torch.no_grad():
        found = sight.among_heads(attend)
    if found is not None:
        return found
    found = weights_seen.hint(attend, past, kernel, others)
    if found or kernel is not None:  # which has no scores to be hidden
        return found
    return sight.hint(attend, past, own_weights.not_causal)


def of_scores(table: Any, always: bool, layout: str) -> dict[str, Any]:
    """What is done otherwise by those that compute scores."""
    formula = Formula(table=table, always=always)
    base = replace(design(formula), always=always or table is not None)
    steps = ALWAYS_CAUSAL if always or table else NEVER_CAUSAL
    if table is not None:
        steps = (*own_masks.of_table(table), *steps)

    def answer(change: Callable[[Design], Design]) -> Callable[..., Any]:
        return in_layout(change(base), layout, grouped=False)

    tiled = tuple(
        replace(known, answer=bound(at(tile, known.answer), table, always))
        for tile in (TILES_OF_OTHERS if table is None else ())
        for known in OF_TILES
    )
    return {
        "deviations": (*singles(steps, answer), *tiled),
        "second": lambda: pairs(steps, answer, hiding.SAFE),
    }


@mistake
def first_tile_left_out(q, k, v, causal, claim):
    """Your first keys are not seen.

    Cause: The loop over the tiles starts at the second.
    Cure: range(0, n_k, tile).
    Chapter: bench#in-tiles
    """
    pieces = list(tiles.tiles_of(q, k, v, causal))
    return tiles.shared(*tiles.summed(pieces[1:] or pieces))


@mistake
def sum_is_not_rescaled(q, k, v, causal, claim):
    """Your output is too short, as soon as a later tile is larger.

    Cause: With a new maximum the output shrinks, and the running sum is
        forgotten.
    Cure: Multiply both by exp(old maximum - new maximum).
    Chapter: bench#in-tiles
    """
    output, _ = tiles.summed(tiles.tiles_of(q, k, v, causal))
    _, total = tiles.summed(tiles.tiles_of(q, k, v, causal), shrink=False)
    return tiles.shared(output, total)


OF_TILES = (*tiles.OF_TILES, first_tile_left_out, sum_is_not_rescaled)
TILES_OF_OTHERS = (1, 2, 3, 4, 5, 8, 16, 64, 128)


def at(tile: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """A mistake with tiles of another size."""

    def with_tile(*arguments: Any) -> Any:
        with tiles.of_size(tile):
            return function(*arguments)

    return with_tile


def bound(
    function: Callable[..., Any], claim: Any, always: bool = False
) -> Callable[..., Any]:
    """A function of (q, k, v, causal, claim) as a mechanism: of one claim."""

    def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Any:
        return function(q, k, v, causal or always, claim)

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
        mistakes=tuple(
            mistake
            for mistake in own_weights.MISTAKES
            if mistake is not NO_MISTAKE[always]
        ),
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
