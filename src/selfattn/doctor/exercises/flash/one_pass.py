"""`one_pass(scores, values, tile)`: a softmax average, a tile at a time."""

import math

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe

ROW = {"scores": "n", "values": "n d", "tile": lambda sizes: 3}
SIZES = {"n": 11, "d": 5}


def rising(inputs: Inputs) -> None:
    """Each score is larger than the one before."""
    inputs["scores"] = torch.arange(float(len(inputs["scores"])))


def falling(inputs: Inputs) -> None:
    """Each score is smaller than the one before."""
    inputs["scores"] = -torch.arange(float(len(inputs["scores"])))


def large(inputs: Inputs) -> None:
    """Scores whose exponentials no float32 can hold."""
    inputs["scores"] = inputs["scores"] * 40 + 200


def low(inputs: Inputs) -> None:
    """Scores further down than a kernel's author expected."""
    inputs["scores"] = inputs["scores"] - 60_000


def first_tile_hidden(inputs: Inputs) -> None:
    """What a mask makes of the first tile and of another key."""
    inputs["scores"][:3] = -math.inf
    inputs["scores"][7:8] = -math.inf


def solution(scores, values, tile):
    """In one pass, from the lowest number there is."""
    m = torch.full_like(scores[0], torch.finfo(scores.dtype).min)
    total = summed = 0.0
    pairs = zip(scores.split(tile), values.split(tile), strict=True)
    for s, v in pairs:
        larger = torch.maximum(m, s.max())
        shrink, power = (m - larger).exp(), (s - larger).exp()
        total = shrink * total + power.sum()
        summed = shrink * summed + power @ v
        m = larger
    return summed / total


@mistake
def never_shrunk(scores, values, tile):
    """It is right as long as the largest score is in the first tile.

    Cause: Sums that were measured against a smaller maximum stay as they
        are when a larger one comes.
    Cure: Multiply both sums by exp(m - larger) first.
    """
    m, total, summed = -math.inf, 0.0, 0.0
    pairs = zip(scores.split(tile), values.split(tile), strict=True)
    for s, v in pairs:
        larger = max(m, s.max())
        power = (s - larger).exp()
        total = total + power.sum()
        summed = summed + power @ v
        m = larger
    return summed / total


@mistake
def total_not_shrunk(scores, values, tile):
    """Your output is too small after a larger score.

    Cause: The sum of the values shrinks, and the total does not.
    Cure: Both shrink, by the same factor.
    """
    m, total, summed = torch.finfo(scores.dtype).min, 0.0, 0.0
    pairs = zip(scores.split(tile), values.split(tile), strict=True)
    for s, v in pairs:
        larger = s.max().clamp(min=m)
        shrink, power = (m - larger).exp(), (s - larger).exp()
        total = total + power.sum()
        summed = shrink * summed + power @ v
        m = larger
    return summed / total


@mistake
def sum_not_shrunk(scores, values, tile):
    """Your output is too large after a larger score.

    Cause: The total shrinks, and the sum of the values does not.
    Cure: Both shrink, by the same factor.
    """
    m, total, summed = torch.finfo(scores.dtype).min, 0.0, 0.0
    pairs = zip(scores.split(tile), values.split(tile), strict=True)
    for s, v in pairs:
        larger = s.max().clamp(min=m)
        shrink, power = (m - larger).exp(), (s - larger).exp()
        total = shrink * total + power.sum()
        summed = summed + power @ v
        m = larger
    return summed / total


@mistake
def grown_instead_of_shrunk(scores, values, tile):
    """After a larger score, what came before counts far too much.

    Cause: The factor is upside down: exp(larger - m).
    Cure: exp(m - larger), which is never above 1.
    """
    m, total, summed = scores[0], 0.0, 0.0
    pairs = zip(scores.split(tile), values.split(tile), strict=True)
    for s, v in pairs:
        larger = torch.maximum(m, s.max())
        grow, power = (larger - m).exp(), (s - larger).exp()
        total = grow * total + power.sum()
        summed = grow * summed + power @ v
        m = larger
    return summed / total


@mistake
def no_maximum(scores, values, tile):
    """Large scores give NaN.

    Cause: No maximum is subtracted, and the exponentials overflow.
    Cure: Subtract the largest score so far, and shrink what was collected.
    """
    total = summed = 0.0
    pairs = zip(scores.split(tile), values.split(tile), strict=True)
    for s, v in pairs:
        total = total + s.exp().sum()
        summed = summed + s.exp() @ v
    return summed / total


@mistake
def from_minus_infinity(scores, values, tile):
    """A first tile that is all hidden gives NaN.

    Cause: m starts at -inf, and -inf - (-inf) is no number.
    Cure: Start at the lowest finite one, torch.finfo(scores.dtype).min.
    """
    m, total, summed = torch.full_like(scores[0], -math.inf), 0.0, 0.0
    pairs = zip(scores.split(tile), values.split(tile), strict=True)
    for s, v in pairs:
        larger = torch.maximum(m, s.max())
        shrink, power = (m - larger).exp(), (s - larger).exp()
        total = shrink * total + power.sum()
        summed = shrink * summed + power @ v
        m = larger
    return summed / total


@mistake
def from_a_large_negative_number(scores, values, tile):
    """A row of low scores gives nothing over nothing.

    Cause: m starts at a number that scores can lie below.
    Cure: Start at the lowest there is, torch.finfo(scores.dtype).min.
    """
    m, total, summed = torch.full_like(scores[0], -50_000.0), 0.0, 0.0
    pairs = zip(scores.split(tile), values.split(tile), strict=True)
    for s, v in pairs:
        larger = torch.maximum(m, s.max())
        shrink, power = (m - larger).exp(), (s - larger).exp()
        total = shrink * total + power.sum()
        summed = shrink * summed + power @ v
        m = larger
    return summed / total


@mistake
def average_of_averages(scores, values, tile):
    """Every tile counts the same, however loud it is.

    Cause: Each tile was softmaxed by itself, and the results averaged.
    Cure: Tiles count by what their softmax divided by.
    """
    pairs = zip(scores.split(tile), values.split(tile), strict=True)
    parts = [s.softmax(0).nan_to_num() @ v for s, v in pairs]
    return torch.stack(parts).mean(0)


ONE_PASS = Exercise(
    "flash/one_pass",
    asks="softmax(scores) values, a tile at a time",
    solution=solution,
    probes=(
        Probe("it is the softmax's average", ROW, SIZES, gradient=True),
        Probe("the largest score may come last", ROW, SIZES, change=rising),
        Probe("the largest score may come first", ROW, SIZES, change=falling),
        Probe("large scores do not overflow", ROW, SIZES, change=large),
        Probe("low scores count, too", ROW, SIZES, change=low),
        Probe(
            "a first tile may be all hidden",
            ROW,
            SIZES,
            change=first_tile_hidden,
            fixed=("n",),
        ),
        Probe("float64 stays float64", ROW, SIZES, dtype=torch.float64),
    ),
    mistakes=(
        never_shrunk,
        total_not_shrunk,
        sum_not_shrunk,
        grown_instead_of_shrunk,
        no_maximum,
        from_minus_infinity,
        from_a_large_negative_number,
        average_of_averages,
    ),
)
