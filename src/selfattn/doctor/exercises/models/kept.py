"""A prediction: how many tokens top-p keeps, behind a temperature."""

import torch

from selfattn.doctor.exercise import mistaken_value, prediction

CHANCES = torch.tensor([0.5, 0.25, 0.16, 0.09])
TEMPERATURE, P = 0.5, 0.9


def left(chances: torch.Tensor) -> int:
    """How many of the likeliest reach p."""
    before = chances.cumsum(dim=-1) - chances
    return int((before < P).sum())


SHARPER = (CHANCES.log() / TEMPERATURE).softmax(dim=-1)


@mistaken_value
def without_the_temperature():
    """So many are kept at a temperature of 1.

    Cause: The chances as they are: .5 + .25 + .16 reaches .9.
    Cure: A temperature of one half squares the chances and renormalises
        them, before top-p.
    """
    return left(CHANCES)


@mistaken_value
def without_the_one_that_crosses():
    """The token that reaches p is kept as well.

    Cause: Counted were those whose running total is at most p.
    Cure: Keep a token if p was not made up before it.
    """
    return int((SHARPER.cumsum(dim=-1) <= P).sum())


@mistaken_value
def hotter():
    """The temperature worked the wrong way.

    Cause: The scores were multiplied by one half: the chances' square roots.
    Cure: Divide by the temperature: below 1 the likely become likelier.
    """
    return left((CHANCES.log() * TEMPERATURE).softmax(dim=-1))


@mistaken_value
def each_by_itself():
    """No token has a chance of .9 by itself.

    Cause: Each chance was compared with p.
    Cure: It is the running total over the likeliest that has to reach p.
    """
    return int((SHARPER >= P).sum())


KEPT = prediction(
    "models/kept",
    asks="how many tokens are left by top-p .9 at temperature one half",
    solution=left(SHARPER),
    mistakes=(
        without_the_temperature,
        without_the_one_that_crosses,
        hotter,
        each_by_itself,
    ),
)
