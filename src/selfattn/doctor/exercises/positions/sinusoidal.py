"""Tables of sines and cosines from position 0 on, and how they go wrong."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from selfattn.doctor.exercise import Mistake, mistake
from selfattn.doctor.probes import Probe
from selfattn.positions import sinusoidal


def sizes(n, d_model):
    """The inputs of a probe: two numbers."""
    return {"n": lambda _: n, "d_model": lambda _: d_model}


def table(n, d_model, exponent, first=0, dtype=torch.float64, base=10_000.0):
    """The table with other exponents, one for each feature."""
    p = torch.arange(first, first + n, dtype=dtype)[:, None]
    f = torch.arange(d_model, dtype=dtype)
    angle = p / base ** exponent(f)
    return torch.where(f % 2 == 0, angle.sin(), angle.cos()).float()


def right(d_model):
    """The exponents as they should be, equal in each pair."""
    return lambda f: 2 * (f // 2) / d_model


@mistake
def sines_first(n, d_model):
    """The numbers are right, but not in their places.

    Cause: All sines stand first and all cosines after them. Some programs
        do so, and it is a table as good; it is not the paper's.
    Cure: Sine and cosine of one angle are neighbours: features 2i, 2i + 1.
    """
    whole = sinusoidal(n, d_model)
    return torch.cat((whole[:, 0::2], whole[:, 1::2]), dim=-1)


@mistake
def every_feature_its_own_angle(n, d_model):
    """Your even features are right, and the odd ones are not.

    Cause: The exponent is f/d for feature f, so that a sine and the cosine
        beside it have different angles, and no rotation moves the table on.
    Cure: Features 2i and 2i + 1 share the angle p / 10000^(2i/d).
    """
    return table(n, d_model, lambda f: f / d_model)


@mistake
def the_two_is_missing(n, d_model):
    """Your waves get longer only half as fast as they should.

    Cause: The exponent is i/d for pair i.
    Cure: It is 2i/d: the pairs share out the whole way from 1 to 10000.
    """
    return table(n, d_model, lambda f: (f // 2) / d_model)


@mistake
def reaching_the_base(n, d_model):
    """Your last pair is too slow.

    Cause: The exponents end at 1, as if divided by d - 2 (or the pairs were
        counted with linspace up to 1).
    Cure: 2i/d, whose last is 1 - 2/d.
    """
    return table(n, d_model, lambda f: 2 * (f // 2) / max(d_model - 2, 1))


@mistake
def faster_and_faster(n, d_model):
    """Each pair should turn more slowly than the one before; yours hurries.

    Cause: The angle is p times 10000^(2i/d).
    Cure: Divide by it, or multiply by 10000^(-2i/d).
    """
    return table(n, d_model, lambda f: -2 * (f // 2) / d_model)


@mistake
def sine_and_cosine_exchanged(n, d_model):
    """Position 0 should be 0, 1, 0, 1, and yours is 1, 0, 1, 0.

    Cause: Even features are cosines.
    Cure: Even features are sines, odd ones cosines.
    """
    whole = table(n, d_model + d_model % 2, right(d_model))
    pairs = whole.unflatten(-1, (-1, 2))
    return pairs.flip(-1).flatten(-2)[:, :d_model]


@mistake
def counted_from_one(n, d_model):
    """Your first row is that of position 1.

    Cause: Positions are counted from 1.
    Cure: From 0: torch.arange(n).
    """
    return table(n, d_model, right(d_model), first=1)


@mistake
def no_odd_width(n, d_model):
    """It fails when d_model is odd.

    Cause: There is one cosine fewer than there are angles, and the columns
        1::2 have no room for the last.
    Cure: Make one pair more than there is room for and cut the table to
        d_model columns, or leave the last cosine out.
    """
    pe = torch.zeros(n, d_model)
    p = torch.arange(n, dtype=torch.float64)[:, None]
    f = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = p * 10_000.0 ** (-f / d_model)
    pe[:, 0::2] = angle.sin().float()
    pe[:, 1::2] = angle.cos().float()
    return pe


@mistake
def angles_in_float32(n, d_model):
    """Right for short texts; at position 5000 the fourth digit is wrong.

    Cause: The angles are float32, or the speeds are. An angle of 5000 radians
        has no more than four digits behind the point then, and the sine
        shows it.
    Cure: Compute in float64 (dtype=torch.float64), and round the sines and
        cosines at the end: .float().
    """
    return table(n, d_model, right(d_model), dtype=torch.float32)


def in_float32(function: Callable[..., Tensor]) -> Mistake:
    """The same mistake by another formula, with other last digits.

    It has a name of its own; its words are those of `angles_in_float32`.
    """
    name = function.__name__.replace("_", " ")
    return replace(angles_in_float32, name=name, answer=function)


def by_speeds(n, d_model, speed, dtype=torch.float32):
    """The table whose pairs turn at these speeds, in this number type."""
    angle = torch.arange(n, dtype=dtype)[:, None] * speed
    waves = torch.stack((angle.sin(), angle.cos()), dim=-1)
    return waves.flatten(-2)[:, :d_model].float()


def powers(d_model):
    """The speeds in float32, as powers of the base."""
    return 10_000 ** (-torch.arange(0, d_model, 2) / d_model)


def exponentials(d_model):
    """The same by an exponential: other last digits."""
    twice = torch.arange(0, d_model, 2).float()
    return torch.exp(twice * (-math.log(10_000) / d_model))


@in_float32
def speeds_multiplied_in_float32(n, d_model):
    """Positions multiplied, not divided."""
    return by_speeds(n, d_model, powers(d_model))


@in_float32
def exponentials_in_float32(n, d_model):
    """Speeds by an exponential, and all of it in float32."""
    return by_speeds(n, d_model, exponentials(d_model))


@in_float32
def speeds_rounded_to_float32(n, d_model):
    """Angles in float64, of speeds in float32."""
    return by_speeds(n, d_model, powers(d_model), torch.float64)


@in_float32
def exponentials_rounded_to_float32(n, d_model):
    """The same, of speeds by an exponential."""
    return by_speeds(n, d_model, exponentials(d_model), torch.float64)


@mistake
def exponent_doubled(n, d_model):
    """Your waves get longer twice as fast as they should.

    Cause: The exponent is 4i/d: torch.arange(0, d, 2) is 2i already, and it
        was multiplied by two once more.
    Cure: 2i/d, either 2 * torch.arange(d / 2) or torch.arange(0, d, 2).
    """
    return table(n, d_model, lambda f: 4 * (f // 2) / d_model)


@mistake
def one_speed_for_all(n, d_model):
    """All your pairs are the same.

    Cause: The exponent is 0 for all of them: // divides whole numbers and
        drops the rest, or the speeds are missing.
    Cure: Divide by d_model with /.
    """
    return table(n, d_model, lambda f: 0 * f)


@mistake
def in_degrees(n, d_model):
    """Your waves are some 57 times as long as they should be.

    Cause: The angles were taken for degrees.
    Cure: They are radians, as torch.sin expects them: convert nothing.
    """
    return by_angles(n, d_model, math.pi / 180)


@mistake
def whole_turns(n, d_model):
    """Your first pair is 0, 1 at every position.

    Cause: The angles were multiplied by 2 pi.
    Cure: Pair 0 turns by one radian a position, not by a full turn.
    """
    return by_angles(n, d_model, 2 * math.pi)


def by_angles(n, d_model, factor):
    """The table whose angles are so many times as large."""
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)
    speed = factor * 10_000.0 ** (-pair / d_model)
    return by_speeds(n, d_model, speed, torch.float64)


@mistake
def float64_returned(n, d_model):
    """The numbers are right, but they are float64.

    Cause: The last step is missing, or numpy made them.
    Cure: .float(), once the sines and cosines are there.
    """
    return sinusoidal(n, d_model).double()


@mistake
def on_its_side(n, d_model):
    """Your rows are features.

    Cause: Positions and frequencies are multiplied the wrong way round.
    Cure: Positions as a column, p[:, None], frequencies as a row.
    """
    return sinusoidal(n, d_model).mT


@mistake
def with_a_batch(n, d_model):
    """There is one axis too many.

    Cause: An axis for the batch was added.
    Cure: A table (n, d_model) broadcasts by itself over any batch in front.
    """
    return sinusoidal(n, d_model)[None]


@mistake
def base_of_a_thousand(n, d_model):
    """Your slow features are too fast.

    Cause: The base is 1000.
    Cure: 10000.
    """
    return table(n, d_model, right(d_model), base=1000.0)


@mistake
def pairs_counted_by_division(n, d_model):
    """Right when d_model is even, and not when it is odd.

    Cause: d_model was replaced by twice the number of pairs, one more than
        it is.
    Cure: The exponent is 2i/d_model, whatever the number of pairs.
    """
    return table(n, d_model, right(2 * ((d_model + 1) // 2)))


PROBES = (
    Probe("two features are sin p and cos p", sizes(3, 2)),
    Probe("of six features, each pair has an angle", sizes(5, 6)),
    Probe("there may be more positions than features", sizes(11, 4)),
    Probe("there may be more features than positions", sizes(3, 16)),
    Probe("an odd last feature is a sine alone", sizes(5, 7), needs=("odd",)),
    Probe("a single feature is sin p", sizes(5, 1), needs=("odd", "single")),
    Probe("a single position is 0, 1, 0, 1", sizes(1, 4)),
    # The numbers lie between -1 and 1, and float32 keeps seven digits of
    # them; angles in float32 are wrong by 4e-4 out there.
    Probe(
        "position 5000 is as right as position 5",
        sizes(5001, 64),
        tolerance=2e-5,
        needs=("long",),
    ),
)
MISTAKES = (
    sines_first,
    every_feature_its_own_angle,
    the_two_is_missing,
    reaching_the_base,
    faster_and_faster,
    sine_and_cosine_exchanged,
    counted_from_one,
    no_odd_width,
    angles_in_float32,
    speeds_multiplied_in_float32,
    exponentials_in_float32,
    speeds_rounded_to_float32,
    exponentials_rounded_to_float32,
    exponent_doubled,
    one_speed_for_all,
    in_degrees,
    whole_turns,
    float64_returned,
    on_its_side,
    with_a_batch,
    base_of_a_thousand,
    pairs_counted_by_division,
)
