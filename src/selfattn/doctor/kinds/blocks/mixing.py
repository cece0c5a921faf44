"""The attentions in a block of its own formula, found by what they do.

Whatever it is called, a part attends if a token that comes in moves others
that come out. The innermost such parts are asked alone; of those that have no
queries, keys and values there is nothing to ask.
"""

from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.kind import Inner, UnclearError
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import (
    calling,
    methods,
    passing_parts,
    properties,
)
from selfattn.doctor.kinds.blocks.handed_on import is_never_masked
from selfattn.doctor.kinds.blocks.recording import (
    BATCH,
    N_K,
    N,
    Roles,
    is_text,
    played,
    recorded,
)
from selfattn.doctor.kinds.blocks.wrapped import holds_maps
from selfattn.doctor.kinds.layer.parts import heads_inside
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

MOVES = 1e-5
Call = Callable[..., Any]


def found(
    block: nn.Module, facts: Facts, adapt: Callable[..., Call], across: bool
) -> Inner:
    """The attentions in a block, each with its kind and what is known of it.

    Args:
        block: as it was handed over.
        facts: what was told, or read off.
        adapt: makes of a block and facts what calls it with x.
        across: whether that takes a context, too.
    """
    ready = calling.prepare(block, facts)
    call = adapt(ready, facts)
    try:
        wide = properties.widths(ready, call, across)[:2]
    except UnclearError:
        return {}
    mixing = those_that_mix(ready, call, wide)
    parts = as_layers(block, ready, mixing, call, wide, facts)
    every = passing_parts.in_their_place(parts, ready, facts, adapt, wide)
    lying = (
        {} if every else passing_parts.attentions(ready, facts, adapt, wide)
    )
    return {**lying, **of_methods(ready, call, wide, facts), **every}


def those_that_mix(
    ready: nn.Module, call: Call, wide: tuple[int, int | None]
) -> dict[str, Roles]:
    """The parts of a block that mix tokens, and how each is called."""
    across = wide[1] is not None
    return {
        name: seen
        for name, part in ready.named_modules()
        if name and holds_maps(part)
        if mixes(part, seen := recorded(part, call, wide[0], across, wide[1]))
    }


def as_layers(
    block: nn.Module,
    ready: nn.Module,
    mixing: dict[str, Roles],
    call: Call,
    wide: tuple[int, int | None],
    facts: Facts,
) -> Inner:
    """The innermost parts that mix, each with its kind and what is known."""
    return {
        name: (
            block.get_submodule(name),
            "cross-attention" if seen.context else "self-attention",
            told_of(
                block.get_submodule(name),
                unmasked(seen, ready.get_submodule(name), call, wide, facts),
                facts,
            ),
        )
        for name, seen in innermost(mixing)
    }


def in_passing(
    block: nn.Module,
    facts: Facts,
    adapt: Callable[..., Call],
    wide: tuple[int, int | None],
) -> Inner:
    """Those in a block's forward, and those that are methods of its own.

    Where all that one has learnt is a part's that is called, it is the part.
    """
    ready = calling.prepare(block, facts)
    call = adapt(ready, facts)
    mixing = those_that_mix(ready, call, wide)
    called = as_layers(block, ready, mixing, call, wide, facts)
    parts = {
        name: one
        for name, one in called.items()
        if not passing_parts.is_odd(one[0], one[1])
    }
    found: dict[str, tuple[Any, str, Facts]] = {}
    lying = passing_parts.attentions(ready, facts, adapt, wide)
    for name, layer in lying.items():
        part = passing_parts.that_is(layer, ready, parts)
        found[part or name] = parts[part] if part else layer
    return {**found, **of_methods(ready, call, wide, facts)}


def of_methods(
    ready: nn.Module, call: Call, wide: tuple[int, int | None], facts: Facts
) -> Inner:
    """Those that are methods of the block itself, which stand as layers."""
    told = {**calling.of_attention(facts), "layout": "BND", "takes": ()}
    return {
        name: (layer, kind_of(layer), known_of(layer, told))
        for name, layer in methods.found(ready, call, wide, facts)
    }


def known_of(layer: nn.Module, told: Facts) -> Facts:
    """What is known of a method: whether it takes a mask, its layer says.

    What one means to it is found out.
    """
    open_ = ("takes",) if isinstance(layer, methods.Shell) else ()
    return {name: fact for name, fact in told.items() if name not in open_}


def kind_of(layer: nn.Module) -> str:
    """The kind of a method that stands as a layer."""
    across = isinstance(layer, methods.Across)
    return "cross-attention" if across else "self-attention"


def innermost(mixing: dict[str, Roles]) -> Iterator[tuple[str, Roles]]:
    """Those in which no other one lies."""
    for name, seen in mixing.items():
        if not any(other.startswith(f"{name}.") for other in mixing):
            yield name, seen


def unmasked(
    seen: Roles,
    part: nn.Module,
    call: Call,
    wide: tuple[int, int | None],
    facts: Facts,
) -> Roles:
    """How an attention is called, without a mask that is never handed on.

    It need not know any, whatever its arguments are called.
    """
    padding = bool(facts.get("padding"))
    if seen.mask is None or not is_never_masked(part, call, wide, padding):
        return seen
    return seen._replace(mask=None)


def told_of(part: nn.Module, seen: Roles, facts: Facts) -> Facts:
    """What is known of an attention: how it is called, and what was told.

    Whoever tells how many heads there are may mean another one's; and what a
    mask hides that it is given is no promise of its own.
    """
    told = dict(calling.of_attention(facts))
    told["layout"] = "NBD" if seen.turned else "BND"
    if facts.get("n_heads") and heads_inside(part) is None:
        told["n_heads"] = facts["n_heads"]
    if seen.mask is None:
        told["takes"] = ()
        if facts.get("causal") is not None and not seen.context:
            told["causal"] = facts["causal"]
    return told


def mixes(part: nn.Module, seen: Roles) -> bool:
    """Whether a token that comes in moves others that come out."""
    if not (seen.x and seen.widths):
        return False  # it is not called with tokens, or not called at all
    names = [one[0] for one in (seen.x, seen.context) if one]
    texts = [
        numbers(BATCH, n, seen.widths[name], seed=n)
        for n, name in zip((N, N_K), names, strict=False)
    ]
    attend = played(copy_of(part), seen, "keep")
    other = texts[-1].clone()
    other[:, 0] = 1 - other[:, 0]
    pair = [
        trial_calls.outcome(attend, *texts[:-1], last)
        for last in (texts[-1], other)
    ]
    if not all(is_text(one) for one in pair):
        return False
    moved = (pair[0] - pair[1]).abs() > MOVES
    return bool(moved[:, 1:].any())
