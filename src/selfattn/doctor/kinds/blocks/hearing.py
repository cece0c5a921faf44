"""Ways to look at a block: each changes an input, and sees what moves."""

import torch
from torch import Tensor

from selfattn.doctor.kinds.layer.experiments import (
    MOVES,
    Answer,
    put,
    slopes,
    source,
    steps,
    what_learns,
    what_padding_moves,
    who_sees_whom,
)
from selfattn.doctor.probes import Inputs


def of_itself(answer: Answer, inputs: Inputs) -> Tensor:
    """Which token's output moves with which token, whatever the context."""
    texts = [inputs[n] for n in ("context",) if n in inputs]
    return who_sees_whom(lambda x: answer(x, *texts), {"x": inputs["x"]})


def who_is_heard(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether padding moves real tokens; and if so, whether it alone does.

    Of a mask that is not used the first is so, and of one upside down both.
    """
    moves = what_padding_moves(answer, inputs)
    name, real = source(inputs), inputs["padding"]
    first = real & (real.cumsum(-1) == 1)
    other = inputs[name].clone()
    other[first] = 1 - 3 * other[first]
    moved = put(answer, {**inputs, name: other}) - put(answer, inputs)
    others = moved[real & ~first] if name == "x" else moved
    return torch.stack([moves, moves & (others.abs().max() <= MOVES)])


def what_is_real_is_heard(answer: Answer, inputs: Inputs) -> Tensor:
    """Which outputs move as all that is real changes, padding aside.

    Who keeps what is padding and blanks the rest hides it from all, too.
    """
    name, real = source(inputs), inputs["padding"]
    other = inputs[name].clone()
    other[real] = 1 - 3 * other[real]
    moved = put(answer, {**inputs, name: other}) - put(answer, inputs)
    moves = ~(moved.abs().amax(dim=-1) <= MOVES)  # or is NaN
    return moves[real] if name == "x" else moves


def of_x(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether something could be learned through x."""
    return what_learns(*through_x(answer, inputs))


def slopes_of_x(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether x has the gradient by which the output moves."""
    return slopes(*through_x(answer, inputs))


def steps_of_x(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether twice as small a step of x makes half the difference."""
    return steps(*through_x(answer, inputs))


def through_x(answer: Answer, inputs: Inputs) -> tuple[Answer, Inputs]:
    """The answer for another x, with the same context."""
    texts = [inputs[n] for n in ("context",) if n in inputs]
    return lambda x: answer(x, *texts), {"x": inputs["x"]}
