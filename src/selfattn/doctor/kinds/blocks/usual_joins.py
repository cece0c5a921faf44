"""Whether a block of which is told where its norms stand is held to that.

Who has a formula of his own may have gates, numbers or parts that others have
not. Where there is nothing of this, it is the usual parts that are joined;
and how, its author has told.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import parts
from selfattn.doctor.kinds.blocks.flow import Flow, followed
from selfattn.doctor.kinds.blocks.paths import sources, stages
from selfattn.doctor.kinds.blocks.sums import Said
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

FLAT = ("flat_attention", "flat_feed_forward")
USUAL = {1.0, -1.0}  # added once, or taken off


def held_to_its_parts(
    block: nn.Module,
    facts: Facts,
    call: Callable[..., Any],
    widths: tuple[int | None, ...],
) -> bool:
    """Whether its sums are of the usual parts alone, and their order told."""
    if not (facts.get("by_parts") and facts.get("placed")):
        return False
    if facts.get("path") == "free":
        return False
    texts = [d for d in widths if d is not None]
    flow = trial_calls.outcome(followed, block, call, *texts)
    if trial_calls.outcome(is_random, call, texts):
        return True  # as it drops, its numbers are like nobody's
    return flow is not None and (
        any(facts.get(name) for name in FLAT)
        or is_of_parts(block, flow, 1 + len(texts))
    )


def is_random(call: Callable[..., Any], texts: list[int]) -> bool:
    """Whether two calls with the same say different things."""
    one, other = (
        call(*(numbers(2, 5, d, seed=d) for d in texts)) for _ in range(2)
    )
    return not torch.allclose(one, other, equal_nan=True)


def is_of_parts(block: nn.Module, flow: Flow, n: int) -> bool:
    """Whether its attentions are added as they are, and nothing is scaled.

    Nor is more added than so many sublayers say.
    """
    found = stages(flow)
    if found is None:
        return False
    times = {n for stage in found for n in stage.whole.terms.values()}
    said = {bare(one) for stage in found for one in stage.beside}
    attending = [
        flow.called[part]
        for name in parts.attentions(block)
        if (part := block.get_submodule(name)) in flow.called
    ]
    if not attending or len(said) > n or not times <= USUAL:
        return False
    if any(map(looks_twice, said)):
        return False
    return all(
        {bare(one) for one in value.moving} & said for value in attending
    )


def looks_twice(said: Said) -> bool:
    """Whether a sublayer looks at the path normed, and as it is, too.

    So it is where queries alone are normed: no usual block does that.
    """
    seen = {*sources(said)}
    return any((not normed, value) in seen for normed, value in seen)


def is_of_two_looks(
    block: nn.Module, call: Callable[..., Any], widths: tuple[int | None, ...]
) -> bool:
    """Whether a sublayer of a block looks twice, and its path is its own."""
    texts = [d for d in widths if d is not None]
    flow = trial_calls.outcome(followed, block, call, *texts)
    found = None if flow is None else stages(flow)
    beside = [one for stage in found or () for one in stage.beside]
    return any(map(looks_twice, beside))


def bare(said: Said) -> Said:
    """What a sublayer says, without a norm behind it."""
    inner = said.reads[0].moving if said.kind == "norm" else []
    return inner[0] if len(inner) == 1 else said
