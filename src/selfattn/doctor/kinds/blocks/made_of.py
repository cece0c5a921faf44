"""Whether a block is made of the parts that were found in it."""

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercise import Exercise, name_of
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import joining
from selfattn.doctor.kinds.blocks.decoder import mistakes as decoder
from selfattn.doctor.kinds.blocks.encoder import mistakes as encoder

# What is a formula of one's own, if nobody told where the norms stand.
DESIGNS = {
    name_of(one)
    for one in (
        joining.the_norm_on_the_other_side,
        joining.norm_before_and_behind,
        joining.sublayers_exchanged,
        encoder.norm_behind_the_sublayer,
        encoder.side_by_side,
        encoder.feed_forward_first,
        decoder.cross_attention_first,
    )
}


def is_made_of(
    exercise: Exercise,
    call: Callable[..., Any],
    wrongly: bool = True,
    but_for: Collection[str] = (),
) -> bool:
    """Whether a block's numbers are those of its parts.

    Args:
        exercise: of these parts.
        call: calls the block.
        wrongly: whether they may be joined as a mistake joins them.
        but_for: the names of mistakes that do not count.
    """
    given = [*exercise.probes[0].make().values()]
    said = trial_calls.outcome(call, *given)
    listed = (*exercise.mistakes, *exercise.deviations) if wrongly else ()
    known = [one for one in listed if one.name not in but_for]
    answers = (exercise.solution, *(one.answer for one in known))
    return is_alike(exercise, call) and any(
        like(value := trial_calls.outcome(answer, *copies(given)), said)
        and torch.allclose(value, said, rtol=1e-4, atol=1e-4)
        for answer in answers
    )


def copies(given: list[Tensor]) -> list[Tensor]:
    """The same numbers again, as a wrong answer may write over them."""
    return [one.clone() for one in given]


def is_alike(exercise: Exercise, call: Callable[..., Any]) -> bool:
    """Whether what its parts say, rightly joined, has a block's shape."""
    given = [*exercise.probes[0].make().values()]
    asked = (exercise.solution, call)
    return like(*(trial_calls.outcome(one, *given) for one in asked))


def like(value: Any, said: Any) -> bool:
    """Whether both are tensors of one shape."""
    both = isinstance(value, Tensor) and isinstance(said, Tensor)
    return both and value.shape == said.shape
