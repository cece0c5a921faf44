"""`distance(other, exact)`: how far off each head is."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe

HEADS = {"other": "heads n d", "exact": "heads n d"}
SIZES = {"heads": 3, "n": 7, "d": 5}


def near_zero(inputs: Inputs) -> None:
    """One number of the exact output is next to nothing."""
    inputs["exact"][:, 2:3, 1:2] = 1e-6


def of_other_sizes(inputs: Inputs) -> None:
    """One head says everything a hundred times as loud."""
    inputs["exact"][0] *= 100
    inputs["other"][0] *= 100


def twice(inputs: Inputs) -> None:
    """All is twice as large as it ought to be."""
    inputs["other"] = 2 * inputs["exact"]


def solution(other, exact):
    """The size of the difference over the size of what is right, by head."""
    return (other - exact).norm(dim=(-2, -1)) / exact.norm(dim=(-2, -1))


@mistake
def number_by_number(other, exact):
    """One number near zero decides everything.

    Cause: Each number's difference is divided by that number.
    Cure: Divide the size of the whole difference by the size of the whole.
    """
    return ((other - exact) / exact).abs().mean(dim=(-2, -1))


@mistake
def over_the_other(other, exact):
    """Twice too large is no error of a half.

    Cause: It is divided by the size of the approximation.
    Cure: By the size of what is right.
    """
    return (other - exact).norm(dim=(-2, -1)) / other.norm(dim=(-2, -1))


@mistake
def squared(other, exact):
    """Your numbers are the squares of the errors.

    Cause: The root is missing.
    Cure: norm(), or the root of the sum of squares, above and below.
    """
    return solution(other, exact) ** 2


@mistake
def absolute(other, exact):
    """A loud head seems wrong.

    Cause: Nothing is divided by.
    Cure: Divide by the size of what is right.
    """
    return (other - exact).norm(dim=(-2, -1))


@mistake
def difference_of_sizes(other, exact):
    """Two outputs of one size may be far apart.

    Cause: The sizes are compared, not the outputs.
    Cure: The size of the difference.
    """
    size = exact.norm(dim=(-2, -1))
    return (other.norm(dim=(-2, -1)) - size).abs() / size


@mistake
def all_heads_at_once(other, exact):
    """One loud head decides for all.

    Cause: The norm runs over the heads, too.
    Cure: dim=(-2, -1): tokens and features of one head.
    """
    return ((other - exact).norm() / exact.norm()).expand(len(exact))


@mistake
def token_by_token(other, exact):
    """It is a mean of ratios.

    Cause: Each token's error is divided by that token's size, and then
        averaged: quiet tokens count as much as loud ones.
    Cure: One ratio for each head.
    """
    return ((other - exact).norm(dim=-1) / exact.norm(dim=-1)).mean(dim=-1)


@mistake
def largest_number(other, exact):
    """It is the largest difference of all, not the size of the whole.

    Cause: amax() above and below: one number decides.
    Cure: norm(), the root of the sum of squares.
    """
    off = (other - exact).abs().amax(dim=(-2, -1))
    return off / exact.abs().amax(dim=(-2, -1))


DISTANCE = Exercise(
    "overview/distance",
    asks="the size of the difference over the size of what is right, by head",
    solution=solution,
    probes=(
        Probe("an error for each head", HEADS, SIZES),
        Probe(
            "a number near zero does no harm", HEADS, SIZES, change=near_zero
        ),
        Probe(
            "heads of other sizes are told apart",
            HEADS,
            SIZES,
            change=of_other_sizes,
        ),
        Probe("twice as large is an error of 1", HEADS, SIZES, change=twice),
        Probe("float64 stays float64", HEADS, SIZES, dtype=torch.float64),
    ),
    mistakes=(
        number_by_number,
        over_the_other,
        squared,
        absolute,
        difference_of_sizes,
        all_heads_at_once,
        token_by_token,
        largest_number,
    ),
)
