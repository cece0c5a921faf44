"""What a block held to its parts is seen to hide, which no number tells.

What is padding is told by a mask that is the block's own, and what hides
later tokens may lie in the block itself: its parts, joined anew, do not know
of it. So who moves whom is asked beside their numbers.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from selfattn.doctor.exercise import Exercise, Mistake, name_of
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import joining, passing_on, properties
from selfattn.doctor.kinds.blocks.flow import followed
from selfattn.doctor.kinds.blocks.stand_ins import Way, mistakes, stand_in
from selfattn.doctor.kinds.layer.experiments import Answer
from selfattn.doctor.probes import Inputs, Probe
from selfattn.masks import causal_mask


class Beheld:
    """An answer by its numbers, and another by what is seen of it."""

    def __init__(self, answer: Answer, by_sight: Answer):
        """Hold both."""
        self.answer, self.by_sight = answer, by_sight

    def __call__(self, *texts: Tensor, **named: Any) -> Any:
        """Answer by numbers."""
        return self.answer(*texts, **named)


def seen(answer: Answer, inputs: Inputs, experiment: Any) -> Any:
    """What an experiment sees of an answer, or of what stands in for it."""
    return experiment(getattr(answer, "by_sight", answer), inputs)


class Asked(NamedTuple):
    """What is asked of a block by sight."""

    causal: bool | None  # whether later tokens are hidden; None: not asked
    padding: bool  # whether its mask for padding is kept
    idle: bool  # whether its network does not bend
    lying: bool = False  # what holds of all blocks, as its parts lie in it
    mask: bool = False  # whether its mask is kept, which no part is handed


def with_sights(
    exercise: Exercise, d_model: int, d_context: int | None, asked: Asked
) -> Exercise:
    """An exercise that asks, beside the numbers, who moves whom.

    Args:
        exercise: asks for the numbers.
        d_model: how wide the tokens are.
        d_context: how wide those of a context are; None if there is none.
        asked: what else is asked.
    """
    if asked == Asked(None, False, False):
        return exercise
    across = d_context is not None
    hides = across if asked.causal is None else asked.causal
    usual = Way(causal_mask if hides else None)
    ways = {one.name: one for one in mistakes(usual, across)}
    right = partial(stand_in, usual)

    def held(known: Mistake) -> Mistake:
        sight = ways[known.name].answer if known.name in ways else right
        return replace(known, answer=Beheld(known.answer, sight))

    named = {one.name for one in exercise.mistakes}
    more = [one for one in ways.values() if one.name not in named]
    more += passing_on.KNOWN if claims_of(asked) else ()
    others = [replace(one, answer=exercise.solution) for one in more]
    probes = listed(d_model, d_context, asked)
    inputs = probes[0].make()
    return replace(
        exercise,
        solution=Beheld(exercise.solution, right),
        probes=(*exercise.probes, *probes),
        by_name=("mask", "padding"),
        mistakes=tuple(map(held, (*exercise.mistakes, *others))),
        deviations=tuple(map(held, exercise.deviations)),
        second=lambda: map(held, exercise.second()),
        optional={**exercise.optional, "padding": "a mask for padding"},
        signs=partial(idle_sign, inputs=inputs, claims=claims_of(asked)),
    )


def listed(d_model: int, d_context: int | None, asked: Asked) -> list[Probe]:
    """The probes of what is asked by sight."""
    token, masked, padding = properties.sights(d_model, d_context)
    probes = [token] if asked.causal is not None else []
    probes += [masked] if asked.mask else []
    probes += [padding] if asked.padding else []
    probes += of_all(d_model, d_context) if asked.lying else []
    by_sight = [
        replace(one, experiment=partial(seen, experiment=one.experiment))
        for one in probes
    ]
    return by_sight + idle(d_model, d_context, claims_of(asked))


# What is asked of those anyway, or what its numbers tell.
ITS_OWN = (properties.ITS_SIGHT, *passing_on.CLAIMS)


def of_all(d_model: int, d_context: int | None) -> list[Probe]:
    """What holds of all blocks, whatever is told of them."""
    every = properties.probes(d_model, d_context, "free")
    return [one for one in every if not one.needs and one.claim not in ITS_OWN]


def sees_right(exercise: Exercise, call: Callable[..., Any]) -> bool:
    """Whether its tokens see what an exercise asks for, if it does."""
    asked: list[Any] = [
        probe
        for probe in exercise.probes
        if probe.claim == properties.ITS_SIGHT
    ]
    for probe in asked:
        right, seen = (
            trial_calls.outcome(probe.experiment, one, probe.make())
            for one in (exercise.solution, call)
        )
        if seen is None or not torch.equal(right, seen):
            return False
    return True


IDLE = ("each part that was made does something", "a network bends")


def claims_of(asked: Asked) -> tuple[str, ...]:
    """What is asked of what its parts do at all.

    Where they can be called, a norm that is not is told by the numbers.
    """
    if asked.lying:
        return (*IDLE, *passing_on.STEPS)
    return IDLE[-1:] if asked.idle else ()


def idle(
    d_model: int, d_context: int | None, claims: tuple[str, ...]
) -> list[Probe]:
    """The probes of what its parts do at all."""
    x, sizes = properties.described_as(d_model, d_context)
    listed = passing_on.probes(x, sizes, None)
    return [
        replace(one, fixed=("d_model", "d_context"))
        for one in listed
        if one.claim in claims
    ]


def is_idle(
    block: nn.Module,
    call: Callable[..., Any],
    d_model: int,
    d_context: int | None,
) -> bool:
    """Whether a network does not bend, as far as a block can be followed.

    What the parts compute is their own affair, but for that.
    """
    texts = [d for d in (d_model, d_context) if d is not None]
    flow = trial_calls.outcome(followed, block, call, *texts)
    if flow is None:
        return False
    broken = passing_on.faults(block, flow, None)
    return bool(broken[IDLE[-1]])


def idle_sign(answer: Answer, inputs: Inputs, claims: tuple[str, ...]) -> str:
    """The name of what a part of a block does not do; "" if it does."""
    broken = passing_on.seen(answer, inputs, None)
    listed = next((broken[one] for one in claims if broken.get(one)), [])
    # Norms, and all maps of a sublayer, are told by the numbers.
    told = len(listed) in (1, 2) and name_of(joining.no_norm) not in listed
    return listed[0] if told else ""
