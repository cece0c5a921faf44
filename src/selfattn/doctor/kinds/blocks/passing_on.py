"""Probes of how a block passes on x, and what its sublayers bring.

They hold for every block, whatever its sublayers do: x comes through beside
them, what they say is added to it, and the norms stand where they were told.
"""

import weakref
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.deviations import scores
from selfattn.doctor.exercise import described, name_of
from selfattn.doctor.exercises.multihead import attention
from selfattn.doctor.kinds import one_length
from selfattn.doctor.kinds.blocks import (
    cores,
    idle_parts,
    joining,
    path_faults,
)
from selfattn.doctor.kinds.blocks.decoder import mistakes as decoder
from selfattn.doctor.kinds.blocks.encoder import mistakes as encoder
from selfattn.doctor.kinds.blocks.flow import Flow, followed
from selfattn.doctor.kinds.blocks.parts import attentions
from selfattn.doctor.kinds.blocks.paths import stages
from selfattn.doctor.kinds.layer import taught
from selfattn.doctor.kinds.layer.deviations import projection_not_used
from selfattn.doctor.kinds.layer.experiments import Answer
from selfattn.doctor.patient import Facts, Patient
from selfattn.doctor.probes import Inputs, Probe, Sizes

FREE = "path='free'"
ASKED = (
    path_faults.taken_off,
    path_faults.path_normed,
    path_faults.norms_on_both_sides,
)
MEANT = {name_of(one): FREE for one in ASKED}  # some may mean these
PROMISED_BY = dict.fromkeys(MEANT, "path")
KNOWN = tuple(
    described(one)
    for one in (
        joining.no_residual,
        joining.no_residual_around_the_attention,
        joining.no_residual_around_the_feed_forward,
        decoder.no_residual_around_the_cross_attention,
        encoder.residual_from_the_start,
        joining.residual_subtracted,
        joining.norm_on_the_path,
        joining.the_norm_on_the_other_side,
        joining.norm_before_and_behind,
        joining.no_norm,
        joining.no_attention,
        joining.no_feed_forward,
        joining.network_without_a_bend,
        projection_not_used,
        path_faults.no_residual_around_a_sublayer,
        path_faults.path_twice,
        *ASKED,
        *cores.KNOWN,
        attention.detached,
        scores.computed_in_half_precision,
    )
)
FOLLOWED: Any = weakref.WeakKeyDictionary()  # of each block, what is wrong
CLAIMS = (
    "x comes through beside the sublayers",
    "what a sublayer brings is passed on",
    "what sublayers say is added",
    "x is added once",
    "each part that was made does something",
    "a network bends",
    "norms stand where they should",
    "each number that was made can learn",
    "weights sum to one over what is seen",
    "scores are divided by the root of a key's width",
)
PATHS, STEPS = CLAIMS[:-3], CLAIMS[-3:]  # of what is computed
WHATEVER_ITS_PATH = ("each part that was made does something", *STEPS)


def faults(
    block: nn.Module,
    flow: Flow,
    order: str | None,
) -> dict[str, list[str]]:
    """The names of all that is wrong, by the claims that it breaks.

    Args:
        block: what is asked.
        flow: what it was seen to make.
        order: where its norms stand, as for `properties.of_widths`.
    """
    found = stages(flow)
    idle = (*idle_parts.unused(block, flow), *idle_parts.repeated(flow))
    broken = (
        path_faults.lost(flow),
        path_faults.forgotten(flow, found) if found else (),
        path_faults.signs(flow, found) if found else (),
        path_faults.counted(found) if found else (),
        idle,
        idle_parts.straight(flow, found) if found else (),
        path_faults.placed(found, order) if found else (),
    )
    named = dict(zip(PATHS, map(list, broken), strict=True))
    return {
        claim: named[claim] for claim in claims_of(order) if claim in named
    }


def in_steps(flow: Flow, facts: Facts) -> dict[str, list[str]]:
    """The names of what is wrong with the steps of attention in a block.

    Args:
        flow: what it was seen to make.
        facts: what is known of it.
    """
    width, n_keys = flow.x.shape[-1], flow.lengths[-1]
    broken = (
        [*filter(None, flow.averaged)],
        cores.misscaled(flow.output, width, n_keys, facts),
    )
    return dict(zip(STEPS[1:], broken, strict=True))


def claims_of(order: str | None) -> tuple[str, ...]:
    """What is asked of a block whose path is clear, or its own affair."""
    return WHATEVER_ITS_PATH if order == "free" else CLAIMS


def seen(
    answer: Answer, inputs: Inputs, order: str | None
) -> dict[str, list[str]]:
    """What is wrong with a block; nothing of what cannot be followed.

    It is followed once, whichever claims are asked of it.
    """
    block = answer.thing if isinstance(answer, Patient) else None
    if not isinstance(answer, Patient) or not isinstance(block, nn.Module):
        return {}
    texts = [inputs[name] for name in ("x", "context") if name in inputs]
    widths = [text.shape[-1] for text in texts]
    known = FOLLOWED.setdefault(block, {})
    key = repr(answer.facts), order, *widths
    if key not in known:
        call = one_length.told(partial(answer), answer.facts.get("length"))
        flow = followed(block, call, *widths)
        known[key] = {} if flow is None else faults(block, flow, order)
        if flow is not None:
            # What is a part of the block is asked alone, by and by.
            alone = tuple(f"{name}." for name in attentions(block))
            cut = any(
                not name.startswith(alone)
                for name in taught.untaught(block, call, *widths)
            )
            known[key] |= {STEPS[0]: [name_of(attention.detached)] * cut}
            if answer.facts.get("in_passing"):
                known[key] |= in_steps(flow, answer.facts)
    found: dict[str, list[str]] = known[key]
    return found


def holds(
    answer: Answer, inputs: Inputs, claim: str, order: str | None
) -> Tensor:
    """Whether a claim holds of a block."""
    return torch.tensor(not seen(answer, inputs, order).get(claim))


def sign(answer: Answer, inputs: Inputs, order: str | None) -> str:
    """The name of the first thing that is wrong with a block, if any is."""
    broken = seen(answer, inputs, order).values()
    return next((names[0] for names in broken if names), "")


def probes(x: dict[str, Any], sizes: Sizes, order: str | None) -> list[Probe]:
    """One for each claim."""
    return [
        Probe(
            claim,
            x,
            sizes,
            experiment=partial(holds, claim=claim, order=order),
        )
        for claim in claims_of(order)
    ]
