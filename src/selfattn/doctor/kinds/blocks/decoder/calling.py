"""How a decoder block is called, and where its parts are."""

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
    lengths,
    mixing,
    parts,
    passing_parts,
    properties,
    told_names,
)
from selfattn.doctor.kinds.blocks.decoder.reference import Parts
from selfattn.doctor.kinds.blocks.handed_on import of_part
from selfattn.doctor.kinds.blocks.handing_over import CROSS
from selfattn.doctor.kinds.blocks.recording import recorded
from selfattn.doctor.kinds.mask_meanings import as_meant
from selfattn.doctor.kinds.text_layouts import tried
from selfattn.doctor.patient import Facts, parameters
from selfattn.masks import causal_mask

MASKS = (
    "memory_mask",
    "context_mask",
    "encoder_attention_mask",
    "cross_mask",
    "src_mask",
)

FACTS = {
    "self_attention": Fact(
        "the name of its attention to itself", saying=sayings.NAME
    ),
    "cross_attention": Fact(
        "the name of its attention to the context", saying=sayings.NAME
    ),
    "own_mask": Fact(
        "the name of its causal mask, if it must be told", saying=sayings.NAME
    ),
    **calling.FACTS,
    "names": told_names.fact("x", "context"),
}


def names_of(
    block: nn.Module,
    facts: Facts,
    call: Callable[..., object],
    wide: tuple[int, int],
) -> tuple[Any, Any]:
    """The names of the attentions to itself, and to the context.

    Args:
        block: in which they are.
        facts: what was told.
        call: calls the block.
        wide: how wide x and a context are.

    Raises:
        UnclearError: if they are not told and cannot be found.
    """
    found = parts.attentions(block)
    across = [n for n in found if any(word in n.lower() for word in CROSS)]
    if len(across) != 1:
        across = [
            name
            for name, part in found.items()
            if recorded(part, call, wide[0], True, wide[1]).context
        ]
    own = [n for n in found if n not in across]
    names = facts.get("self_attention"), facts.get("cross_attention")
    if None in names:
        if len(own) != 1 or len(across) != 1:
            raise UnclearError(
                "A decoder block has two attentions, and I cannot tell which "
                "is which. Say self_attention=… and cross_attention=…, their "
                "names in the block."
            )
        return own[0], across[0]
    return names


def parts_of(block: nn.Module, facts: Facts) -> Parts:
    """The parts of a block that somebody else wrote.

    Raises:
        UnclearError: if they are not told and cannot be found.
    """
    norms = parts.norms(block, facts, 3)
    first, second, third = norms.each
    d_model, call = parts.width(first, block), adapt(block, facts)
    wide = widths(block, call, d_model)
    if facts.get("in_passing"):
        return parts_in_passing(block, norms, call, wide)
    names = names_of(block, facts, call, wide)
    own, cross = (
        parts.callable_attention(
            parts.part(block, name), call, facts, d_model, wide[1]
        )
        for name in names
    )
    network = parts.network(block, facts, d_model, third, call, 2)
    to_itself, across, last = parts.finished(
        block, d_model, norms.behind, hiding(own, facts), cross, network
    )
    return Parts(
        to_itself,
        across,
        last,
        (first, second, third),
        norms.pre,
        d_model,
        wide[1],
    )


def hiding(own: Callable[..., Tensor], facts: Facts) -> Callable[..., Tensor]:
    """An attention to itself; of one that may see all, without a mask."""
    if calling.hides_by_itself(facts) is not False:
        return own
    return lambda x, mask=None: own(x)


def parts_in_passing(
    block: nn.Module,
    norms: parts.Norms,
    call: Callable[..., object],
    wide: tuple[int, int],
) -> Parts:
    """The parts of a block that lie in its forward."""
    d_model, d_context = wide
    found = passing_parts.of_block(block, call, wide)
    each = (found[name] for name in passing_parts.ROLES)
    to_itself, across, last = parts.finished(
        block, d_model, norms.behind, *each
    )
    pre = norms.pre
    return Parts(to_itself, across, last, norms.each, pre, d_model, d_context)


def widths(
    block: nn.Module, call: Callable[..., object], d_model: int
) -> tuple[int, int]:
    """How wide x and a context are; as its norms, if it cannot be called."""
    found = trial_calls.outcome(properties.widths, block, call, across=True)
    if found is None or found[0] != d_model:
        return d_model, d_model
    return d_model, found[1]


def within(block: nn.Module, facts: Facts) -> Inner:
    """Its two attentions, and what each is."""
    if calling.is_its_own(facts):
        return mixing.found(block, facts, adapt, across=True)
    if facts.get("in_passing"):
        ready = calling.prepare(block, facts)
        wide = properties.widths(ready, adapt(ready, facts), across=True)[:2]
        return mixing.in_passing(block, facts, adapt, wide)
    d_model = parts.width(parts.norms(block, facts, 3).each[0], block)
    call = adapt(block, facts)
    ready = calling.prepare(block, facts)
    wide = widths(ready, adapt(ready, facts), d_model)
    names = names_of(block, facts, call, wide)
    kinds = "self-attention", "cross-attention"
    found = [parts.part(block, name) for name in names]
    usual = {
        name: (part, kind, of_part(part, call, wide, facts))
        for name, part, kind in zip(names, found, kinds, strict=True)
    }
    return passing_parts.in_their_place(usual, ready, facts, adapt, wide)


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call a block with x, a context, and a mask of ours over the context."""

    def block(
        x: Tensor,
        context: Tensor,
        mask: Tensor | None = None,
        padding: Tensor | None = None,
    ) -> object:
        given = {}
        second = facts.get("context_first")
        texts = (context, x) if second else (x, context)
        hidden = {}
        if padding is not None:
            hidden = calling.padded(facts, padding, x)
        name: Any = facts.get("mask_name")
        needed = told_names.needs(thing, name) and name not in hidden
        if mask is None and needed:
            mask = x.new_ones(x.shape[1], context.shape[1], dtype=torch.bool)
        if mask is not None:
            given[name] = as_meant(mask, facts["mask"], x.dtype)
        if facts.get("own_mask"):
            past = causal_mask(x.shape[1], x.shape[1])
            given[facts["own_mask"]] = as_meant(past, facts["mask"], x.dtype)
        call = partial(calling.called, thing, facts, *texts, **hidden)
        return calling.as_wanted(call, given, len(x))

    return one_length.told(block, facts.get("length"))


def read(thing: Any, told: Facts) -> Reading:
    """As for encoder blocks; and whether it must be told what is causal."""
    names = parameters(getattr(thing, "forward", thing))
    own = [n for n in ("tgt_mask", "causal_mask", "trg_mask") if n in names]
    hides = bool(own or told.get("own_mask"))
    seen = calling.read(thing, MASKS, told, n_texts=2, own_mask=hides)
    orders = parts.seen_order(thing, 3, [*calling.ORDERS])
    seen = replace(seen, candidates={**seen.candidates, "order": orders})
    seen = seen.with_facts(own_mask=own[0]) if own else seen
    seen = besides.read(seen, thing, told, adapt, n_texts=2)
    seen = lengths.read(seen, thing, told, adapt, n_texts=2)
    second = takes_x_second(thing, {"mask": "keep", **seen.facts, **told})
    return seen.with_facts(context_first=True) if second else seen


def takes_x_second(thing: nn.Module, known: Facts) -> bool:
    """Whether a block takes its context before x.

    Its output has a token for each of x, and not of what it looks at.
    """
    block = trial_calls.alone(thing)
    for layout in tried(known.get("layout")):
        call = adapt(block, {**known, "layout": layout})
        wide = trial_calls.outcome(properties.widths, block, call, across=True)
        if wide is not None:
            x, context = properties.texts(*wide).values()
            said: Any = trial_calls.outcome(call, x, context)
            # Of two texts of one length none is like the output alone.
            apart = x.shape[1] != context.shape[1]
            return apart and bool(said.shape[:2] == context.shape[:2])
    return False
