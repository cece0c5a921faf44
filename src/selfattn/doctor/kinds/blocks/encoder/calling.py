"""How an encoder block is called, and where its parts are."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Inner, Reading, UnclearError
from selfattn.doctor.kinds import one_length, trial_calls
from selfattn.doctor.kinds.blocks import (
    besides,
    calling,
    endings,
    flat_parts,
    lengths,
    mixing,
    parts,
    passing_parts,
    properties,
    told_names,
)
from selfattn.doctor.kinds.blocks.encoder.reference import Parts
from selfattn.doctor.kinds.blocks.handed_on import of_part
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

FACTS = {
    "attention": Fact("the name of its attention", saying=sayings.NAME),
    **calling.FACTS,
    "order": Fact(
        "where the norms stand",
        {**calling.ORDERS, "parallel": "before sublayers side by side"},
    ),
}


def parts_of(block: nn.Module, facts: Facts) -> Parts:
    """The parts of a block that somebody else wrote."""
    if facts.get("in_passing"):
        return parts_in_passing(block, facts)
    seen = endings.ended(block)
    if seen is not None and not facts.get("norms"):
        return parts_with_ends(block, facts, seen)
    norms = parts.norms(block, facts, 2)
    first, second = norms.each
    d_model, call = parts.width(first, block), adapt(block, facts)
    attention = attention_of(block, facts, d_model)
    network = parts.network(block, facts, d_model, second, call, 1)
    to_itself, last = parts.finished(
        block, d_model, norms.behind, attention, network
    )
    return Parts(
        to_itself,
        last,
        (first, second),
        norms.pre,
        d_model,
        norms.apart,
    )


def parts_in_passing(block: nn.Module, facts: Facts) -> Parts:
    """The parts of a block that lie in its forward."""
    norms = parts.norms(block, facts, 2)
    d_model, call = parts.width(norms.each[0], block), adapt(block, facts)
    found = passing_parts.of_block(block, call, (d_model, None))
    to_itself, last = parts.finished(
        block, d_model, norms.behind, found["own"], found["network"]
    )
    return Parts(to_itself, last, norms.each, norms.pre, d_model, norms.apart)


def parts_with_ends(
    block: nn.Module, facts: Facts, seen: endings.Ended
) -> Parts:
    """The parts of a block whose sublayers end in a part of their own."""
    d_model, call = parts.width(seen.norms[0], block), adapt(block, facts)
    attend = parts.callable_attention(
        parts.part(block, seen.attending), call, facts, d_model
    )
    return Parts(
        endings.attention(seen, attend),
        endings.network(seen, block, call),
        seen.norms,
        pre=False,
        d_model=d_model,
        apart=False,
    )


def attention_of(block: nn.Module, facts: Facts, d_model: int) -> Any:
    """The attention of a block: a part of it, or maps that lie in it.

    Raises:
        UnclearError: if it is not told and cannot be found.
    """
    found = parts.attentions(block)
    name = facts.get("attention") or (
        next(iter(found)) if len(found) == 1 else ""
    )
    if name:
        return parts.callable_attention(
            parts.part(block, name), adapt(block, facts), facts, d_model
        )
    lying = flat_parts.attention(block, facts)
    if lying is None:
        raise UnclearError(
            f"An encoder block has one attention, but I find {len(found)}. "
            "Say attention=…, its name in the block, or flat_attention=(q, k, "
            "v, out), if its maps lie in the block; or formula='own', if it "
            "is part of a sublayer that adds and norms, too."
        )
    return lying


def within(block: nn.Module, facts: Facts) -> Inner:
    """Its attention, if it is a part of it, and what that is."""
    if calling.is_its_own(facts):
        return mixing.found(block, facts, adapt, across=False)
    if facts.get("in_passing"):
        d_model = parts.width(parts.norms(block, facts, 2).each[0], block)
        return mixing.in_passing(block, facts, adapt, (d_model, None))
    if endings.ended(block) is not None:
        return {}  # what lies in it is none that can be asked alone
    name = facts.get("attention")
    found = {name: parts.part(block, name)} if name else None
    found = found or parts.attentions(block)
    d_model = parts.width(parts.norms(block, facts, 2).each[0], block)
    call, wide = adapt(block, facts), (d_model, None)
    usual = {
        name: (part, "self-attention", of_part(part, call, wide, facts))
        for name, part in found.items()
    }
    ready = calling.prepare(block, facts)
    return passing_parts.in_their_place(usual, ready, facts, adapt, wide)


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call a block with x and a mask that is True where one may look."""

    def block(
        x: Tensor, mask: Tensor | None = None, padding: Tensor | None = None
    ) -> object:
        given = {}
        hidden = {}
        if padding is not None:
            hidden = calling.padded(facts, padding, x)
        name: Any = facts.get("mask_name")
        needed = told_names.needs(thing, name) and name not in hidden
        if mask is None and needed:
            mask = x.new_ones(x.shape[1], x.shape[1], dtype=torch.bool)
        if mask is not None:
            given[name] = as_meant(mask, facts["mask"], x.dtype)
        call = partial(calling.called, thing, facts, x, **hidden)
        return calling.as_wanted(call, given, len(x))

    return one_length.told(block, facts.get("length"))


def read(thing: Any, told: Facts) -> Reading:
    """What can be read off a block, and the name of its mask."""
    seen = calling.read(thing, parts.MASKS, told)
    seen = besides.read(seen, thing, told, adapt, n_texts=1)
    seen = lengths.read(seen, thing, told, adapt, n_texts=1)
    orders = parts.seen_order(thing, 2, [*FACTS["order"].options])
    orders = ["post"] if endings.ended(thing) is not None else orders
    seen = replace(seen, candidates={**seen.candidates, "order": orders})
    if told.get("padding") or not seen.facts.get("mask_name"):
        return seen
    meanings = of_padding_alone(thing, {**seen.facts, **told})
    if not meanings:
        return seen
    open_ = {**seen.candidates, "padding": meanings}
    lacks = {"mask": "its mask is for padding"}
    return replace(seen.with_facts(mask="keep"), candidates=open_, lacks=lacks)


def of_padding_alone(block: nn.Module, known: Facts) -> list[str]:
    """What its mask may say, if that is (batch, tokens) and nothing else.

    Seen by which of the meanings keeps what is padding from all others; all
    of them, if none does, and none, if it takes a row for each query.
    """
    call = adapt(block, known)
    wide = trial_calls.outcome(properties.widths, block, call, False)
    if wide is None:
        return []
    x, real = numbers(2, 5, wide[0]), torch.arange(5).expand(2, -1) < 4
    other = torch.where(real[..., None], x, 1 - x)

    def says(*given: Tensor, **told: Any) -> Any:
        adapted = adapt(block, {**known, **told})
        rows = {"mask": real[0].expand(5, -1)}
        named = rows if "mask" in told else {"padding": real}
        return trial_calls.outcome(adapted, *given, **named)

    if any(is_tensor(says(x, mask=meant)) for meant in ("keep", "add")):
        return []
    listed = [*FACTS["padding"].options]
    both = {m: [says(one, padding=m) for one in (x, other)] for m in listed}
    if not all(is_tensor(said) for pair in both.values() for said in pair):
        return []
    fit = [m for m, said in both.items() if alike(*said)]
    return fit or listed


def alike(one: Tensor, other: Tensor) -> bool:
    """Whether all tokens but the last say the same."""
    return torch.allclose(one[:, :-1], other[:, :-1])


def is_tensor(value: Any) -> bool:
    """Whether a call gave numbers."""
    return isinstance(value, Tensor)
