"""What both kinds of blocks are: their own parts, found, joined and called.

An encoder block and a decoder block have other parts, and other words for
them; what is asked of these, and of the dropout between them, is one.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn

from selfattn.doctor.deviations.training import with_dropout
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.kind import Kind, UnclearError
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import (
    cores,
    passing_on,
    past_seen,
    properties,
    unfound,
    written,
)
from selfattn.doctor.kinds.blocks.beheld import Asked, is_idle, with_sights
from selfattn.doctor.kinds.blocks.calling import (
    hides_by_itself,
    is_its_own,
    prepare,
)
from selfattn.doctor.kinds.blocks.exercise import Ordered, of_parts
from selfattn.doctor.kinds.blocks.handed_on import is_never_masked
from selfattn.doctor.kinds.blocks.made_of import (
    DESIGNS,
    is_alike,
    is_made_of,
)
from selfattn.doctor.kinds.blocks.parts import attentions
from selfattn.doctor.kinds.blocks.usual_joins import (
    held_to_its_parts,
    is_of_two_looks,
)
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import Probe


class Design(NamedTuple):
    """What some mean by what is a mistake of others."""

    fact: str  # that says so
    excluded_by: tuple[str, ...]  # facts of which none was told, if it is


NONE: Mapping[str, Design] = {}


class Wide(Ordered, Protocol):
    """Parts of which the width is known, too."""

    @property
    def d_model(self) -> int:
        """The number of features of a token."""

    @property
    def d_context(self) -> int | None:
        """That of a token of a context; None if it takes none."""


def of_its_parts(made: Callable[[], Exercise]) -> Exercise | None:
    """What is asked of a block with such parts; None if it has none."""
    try:
        return made()
    except UnclearError:
        return None


def check_width(
    thing: nn.Module, usual: Exercise, call: Callable[..., Any], across: bool
) -> None:
    """Ask, if a block takes tokens of another width than its parts alone.

    Raises:
        UnclearError: if it does, such as in two streams side by side.
    """
    given = [*usual.probes[0].make().values()]
    if trial_calls.outcome(call, *given) is not None:
        return
    wide = trial_calls.outcome(properties.widths, thing, call, across)
    if wide and wide[0] != given[0].shape[-1]:
        raise UnclearError(
            f"It takes tokens of {wide[0]} features, and its norms take "
            f"{given[0].shape[-1]}, so that I cannot tell how its parts are "
            "joined. Say formula='own', and I ask what holds of all blocks."
        )


def perhaps_its_own(
    name: str,
    thing: nn.Module,
    facts: Facts,
    call: Callable[..., Any],
    made: Callable[[], Exercise],
) -> Exercise:
    """What a block is held to: its parts, joined as they should be.

    Who was said to have his own formula is not, unless it is these that he
    joins after all.
    """
    across = "context" in inspect.signature(call).parameters
    if not is_its_own(facts):
        plain = made()
        check_width(thing, plain, call, across)
        return plain
    usual = of_its_parts(made)
    inferred = "how" in facts
    told = inferred or facts.get("placed") is not None
    if usual and is_made_of(usual, call, but_for=() if told else DESIGNS):
        return usual
    wide = properties.widths(thing, call, across)
    held = held_to_its_parts(thing, facts, call, wide[:2])
    if usual and held and is_alike(usual, call):
        return usual
    order = facts.get("path") or facts.get("placed")
    if "path" not in facts and is_of_two_looks(thing, call, wide[:2]):
        order = "free"  # what is normed for some alone may go on so
    causal, how = hides_later(facts, call, wide), facts.get("how")
    return properties.of_widths(name, *wide, causal, order, how)


def hides_later(
    facts: Facts, call: Callable[..., Any], wide: properties.Wide
) -> Any:
    """Whether later tokens are hidden, as was told, or as is seen.

    Who reads a context writes, word by word, and is held to it; unless
    nobody said so much of it that a formula of its own was among it. Who
    hides them as was told, and some of the past, has a sight of its own.

    Raises:
        UnclearError: if that one sees later tokens.
    """
    told, inferred = hides_by_itself(facts), "how" in facts
    if told is not None:
        near = told and not inferred and past_seen.sees_near(call, *wide)
        return "own" if near else told
    across = wide.d_context is not None
    if across and not inferred:
        return True
    seen = past_seen.seen_past(call, *wide)
    if across and seen is False:
        raise UnclearError(properties.MAY_IT_SEE)
    return seen


def sees(facts: Facts, parts: Wide) -> bool | None:
    """Whether one held to its parts is to hide later tokens, if that is asked.

    It is where that was told. Who writes hides them, and where his parts are
    called as others', so does what is compared with him.
    """
    across = parts.d_context is not None
    causal = hides_by_itself(facts)
    if across and causal is not False and not facts.get("in_passing"):
        return None
    return True if across and causal is None else causal


def by_sight(
    made: Exercise,
    block: nn.Module,
    call: Callable[..., Any],
    facts: Facts,
    parts: Wide,
) -> Exercise:
    """An exercise of a block's parts, which asks what was told besides."""
    wide, padding = (parts.d_model, parts.d_context), facts.get("padding")
    lying, idle = facts.get("in_passing"), is_idle(block, call, *wide)
    unheard = bool(facts.get("mask_told")) and not lying
    asked = Asked(
        sees(facts, parts),
        padding is not None,
        idle,
        bool(lying),
        unheard and is_handed_on_to_none(block, call, facts, wide),
    )
    return with_sights(made, *wide, asked)


def is_handed_on_to_none(
    block: nn.Module,
    call: Callable[..., Any],
    facts: Facts,
    wide: tuple[int, int | None],
) -> bool:
    """Whether a block's mask reaches none of its attentions: then these,
    joined anew, know of none either.
    """
    named = [facts[name] for name in unfound.ATTENTIONS if facts.get(name)]
    each = [block.get_submodule(n) for n in named or attentions(block)]
    return bool(each) and all(
        is_never_masked(one, call, wide, padding=False) for one in each
    )


def by_design(designs: Mapping[str, Design]) -> dict[str, Any]:
    """What is meant by whom; and the facts by which mistakes are excluded."""
    meant = {name: one.fact for name, one in designs.items()}
    told = {name: one.excluded_by for name, one in designs.items()}
    return {
        "meant": {**cores.MEANT, **passing_on.MEANT, **meant},
        "promised_by": {**passing_on.PROMISED_BY, **told},
    }


def kind_of_block(
    name: str,
    block: Callable[..., Tensor],
    *,
    words: tuple[str, str],
    parts_of: Callable[[nn.Module, Facts], Wide],
    of_width: Callable[..., tuple[Probe, ...]],
    mistakes: tuple[Mistake, ...],
    healthy: Callable[[], nn.Module],
    designs: Mapping[str, Design] = NONE,
    **described: Any,
) -> Kind:
    """The kind of blocks with these parts.

    Args:
        name: what it is called by.
        block: of the parts and inputs, the right output.
        words: as in `of_parts`.
        parts_of: finds the parts of a block.
        of_width: makes inputs as wide as the parts.
        mistakes: wrong answers of the same arguments as ``block``.
        healthy: makes a healthy block, of which nothing need be said.
        designs: of mistakes that some make on purpose, the fact that says so.
        described: what else a `Kind` is told: does, facts, read, adapt.
    """

    def exercise(thing: Any, facts: Facts) -> Exercise:
        def by_parts() -> Exercise:
            parts = parts_of(thing, facts)
            asks = of_width(parts.d_model, parts.d_context), mistakes
            made = of_parts(name, block, parts, *asks, words)
            return by_sight(made, thing, call, facts, parts)

        if callable(facts.get("formula")):
            return written.of(name, thing, facts, described["adapt"])
        call = described["adapt"](thing, facts)
        made = perhaps_its_own(name, thing, facts, call, by_parts)
        return with_dropout(made, facts.get("dropout"))

    described |= by_design(designs)
    described["examples"] = lambda: {"": (healthy(), {})}
    kind = Kind(name, exercise=exercise, prepare=prepare, **described)
    return replace(kind, read=partial(unfound.read, kind))
