"""What a layer is held to: the formula of its own parts, or properties."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import nn

from selfattn.doctor.deviations import hiding
from selfattn.doctor.deviations.design import pairs, singles
from selfattn.doctor.deviations.training import with_dropout
from selfattn.doctor.exercise import Exercise, Mistake, name_of
from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.attention.formula import Formula, claimed
from selfattn.doctor.kinds.attention.own_options import of_own
from selfattn.doctor.kinds.attention.variants import conventions
from selfattn.doctor.kinds.layer import (
    deviations,
    probes,
    properties,
    written,
)
from selfattn.doctor.kinds.layer.between import Inner
from selfattn.doctor.kinds.layer.fitting import based, fitted
from selfattn.doctor.kinds.layer.mistakes import (
    CONVENTIONS,
    MISTAKES,
    heads,
)
from selfattn.doctor.kinds.layer.other_heads import OTHER_HEADS
from selfattn.doctor.kinds.layer.own import Own, told_of
from selfattn.doctor.kinds.layer.parts import projections
from selfattn.doctor.kinds.layer.reference import Masks, Table, layer
from selfattn.doctor.kinds.layer.sighted import (
    ASKS,
    BY_NAME,
    as_layer,
    by_sight,
    possible,
)
from selfattn.doctor.kinds.layer.steps import layer_by
from selfattn.doctor.kinds.layer.width import check_width
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import Probe


def of(thing: Any, facts: Facts, cross: bool = False) -> Exercise:
    """Attention by heads with the module's own projections, or properties."""
    made = held_to(thing, facts, cross)
    made = in_either_layout(made) if facts.get("any_layout") else made
    only = facts.get("length")
    made = made if only is None else of_one_length(made, only)
    return with_dropout(made, facts.get("dropout"))


def held_to(thing: Any, facts: Facts, cross: bool) -> Exercise:
    """The same, of whoever may have told how batch and tokens lie."""
    if callable(facts.get("formula")):
        return written.of(thing, facts, cross)
    own = told_of(facts)
    table = facts.get("table")
    if table is None:
        table = window_of(facts.get("window"), facts["causal"])
    if facts.get("formula", "plain") == "own":
        found = inside(thing, facts, cross, own, table)
        # Who told of a formula in which nothing is found has another word.
        if found is None or not (found.inner or facts.get("free")):
            return by_sight(thing, facts, cross)
        own = found
    made = of_module(
        thing,
        facts["n_heads"],
        facts["packed"],
        tuple(dict(facts.get("projections") or {}).items()),
        facts["causal"],
        cross,
        table,
        own,
    )
    check_width(facts, made.probes[0].sizes["d_model"])
    return made


@lru_cache(maxsize=8)  # one object, so that what its bank does is known
def in_either_layout(made: Exercise) -> Exercise:
    """What one is held to who said neither that the batch comes first.

    Who exchanges batch and tokens in the one layout is right in the other,
    which is tried as well: so whoever is not has made another mistake.
    """
    name = name_of(heads.batch_and_tokens_exchanged)

    def others(known: Iterable[Mistake]) -> tuple[Mistake, ...]:
        return tuple(
            m for m in known if name not in (m.name, m.also and m.also.name)
        )

    return replace(
        made,
        mistakes=others(made.mistakes),
        deviations=others(made.deviations),
        second=lambda: others(made.second()),
    )


@lru_cache(maxsize=8)
def of_one_length(made: Exercise, n: int) -> Exercise:
    """What one is held to whose texts have so many tokens, and no others."""
    one = dict.fromkeys(("n", "n_q", "n_k"), n)
    asked = (
        replace(p, sizes={**p.sizes, **one}, fixed=(*p.fixed, *one))
        for p in made.probes
        if p.sizes.get("n") != 1 and "length" not in p.needs
    )
    return replace(made, probes=tuple(asked))


def inside(
    thing: Any, facts: Facts, cross: bool, own: Own, table: Table | None
) -> Own | None:
    """What is found in a layer, if its numbers are of nothing else.

    One matrix may hold a gate as well, before all the others or behind.
    """
    names = dict(facts.get("projections") or {})
    masks = Masks(always=facts["causal"], claimed=table)
    for order in (own.order, f"{own.order}z", f"z{own.order}"):
        one = own._replace(order=order)
        told = facts["n_heads"], facts["packed"], names, *one.held
        parts = projections(thing, *told)
        if parts is None or (parts.gate is None) != (order == own.order):
            continue
        if (parts.k.W.shape[0] != parts.q.W.shape[0]) > cross:
            continue
        said = {**facts, "order": order}
        inner = fitted(thing, said, parts, own.formula, masks, cross)
        if inner is not None:
            return one._replace(inner=inner)
    return None


@lru_cache(maxsize=32)  # one object, so that its reference is one, too
def window_of(window: int | None, causal: bool) -> Table | None:
    """The table of a window, of which a causal layer sees the past half."""
    if window is None:
        return None
    seen = Formula(window=window, always=causal)
    return lambda n_q, n_k: claimed(n_q, n_k, seen)


@lru_cache(maxsize=8)  # so that what its bank does is not done again
def of_module(
    module: nn.Module,
    n_heads: int,
    packed: str,
    names: tuple[tuple[str, str], ...],
    causal: bool,
    cross: bool,
    table: Table | None,
    own: Own,
) -> Exercise:
    """The reference, probes and mistakes for one module, read in one way.

    Args:
        module: what holds the projections.
        n_heads: how many heads it has.
        packed: how one matrix holds queries, keys and values.
        names: those of its projections, where they were told.
        causal: whether it hides later tokens without being told to.
        cross: whether it looks at another sequence.
        table: of n_q and n_k, a mask that it keeps without being told to.
        own: what else is said of it.
    """
    parts = projections(module, n_heads, packed, dict(names), *own.held)
    if parts is None:
        raise UnclearError("Its heads do not divide its projections.")
    d_model, d_context = parts.q.W.shape[0], parts.k.W.shape[0]
    wide = d_model, d_context, cross
    asked = within(asked_of(*wide, own.inner), own)
    exercise = Exercise(
        "cross-attention" if cross else "self-attention",
        asks=ASKS,
        solution=layer,
        probes=asked + (probes.of_an_empty_text(*wide) if own.empty else ()),
        by_name=BY_NAME,
        mistakes=possible(MISTAKES, causal, table),
        optional=probes.OPTIONAL,
        conventions=CONVENTIONS,
    )
    made = replace(exercise, **by_steps(own, causal, cross, table is not None))
    return made.adapted(
        partial(as_layer, parts=parts, always=causal, claimed=table)
    )


def asked_of(
    d_model: int, d_context: int, cross: bool, inner: Inner | None
) -> tuple[Probe, ...]:
    """The probes; where a formula is its own, in float32 alone by numbers.

    A table of its own may have a type of its own. Where places count, keys
    that are alike are not, and what a mask adds is not asked by such.
    """
    usual = probes.of_widths(d_model, d_context, cross)
    if inner is None:
        return usual
    forms = properties.of_widths(d_model, d_context, cross)
    if inner.turned or inner.bias is not None:
        usual = tuple(p for p in usual if p.experiment is not probes.added)
    return (
        *(p for p in usual if p.dtype == torch.float32),
        *(p for p in forms if p.dtype != torch.float32),
    )


def by_steps(
    own: Own, causal: bool, cross: bool, claims: bool
) -> dict[str, Any]:
    """What is done otherwise; and of another formula, all that is right."""
    base = based(own.formula, own.inner)
    known = deviations.of({"causal": causal, "claims": claims}, cross)
    known = (*of_own(own.formula), *known)

    def answer(change: Callable[[Any], Any]) -> Callable[..., Any]:
        return partial(layer_by, change(base))

    found = {
        "deviations": singles((*known, *OTHER_HEADS), answer),
        "second": lambda: pairs(known, answer, hiding.SAFE),
    }
    if own.formula == Formula() and own.inner is None:
        return found
    rules = conventions(answer)
    return found | {
        "solution": answer(lambda one: one),
        "mistakes": tuple(m for m in rules["empty_row"].values() if m),
        "conventions": rules,
    }


def within(asked: tuple[Probe, ...], own: Own) -> tuple[Probe, ...]:
    """The probes that are no longer than a layer can be asked."""
    most = own.longest or math.inf
    return tuple(p for p in asked if p.sizes.get("n", 0) <= most)
