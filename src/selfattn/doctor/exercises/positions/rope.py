"""Each pair of neighbouring features, rotated, and how that goes wrong."""

import math

import torch

from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.positions import number_types
from selfattn.doctor.exercises.positions.turning import angles, turned
from selfattn.doctor.probes import Probe, in_other_order
from selfattn.positions import (
    pairs_to_halves,
    rope,
    rope_halves,
    sinusoidal,
)


def first(position):
    """Where the first token stands."""
    return lambda _: position


def in_pairs(inputs):
    """One feature more where their number is odd, as in a small input."""
    x = inputs["x"]
    if x.shape[-1] % 2:
        inputs["x"] = torch.cat((x, -2 * x[..., :1]), dim=-1)


def in_pairs_and_other_order(inputs):
    """`in_pairs`, with the numbers in another order of memory."""
    in_pairs(inputs)
    in_other_order(inputs)


PAIR = {"d": 2}
EVEN = {"d": 6}


@mistake
def halves_paired(x, offset):
    """Right for a single pair; with more, other features are turned together.

    Cause: Feature i is paired with i + d/2, as in GPT-NeoX and
        Transformers. That is RoPE as well, but weights trained for the one
        are noise to the other.
    Cure: Here the pairs are neighbours: x[..., 0::2] and x[..., 1::2].
    """
    return rope_halves(x, offset=offset)


@mistake
def sorted_into_halves(x, offset):
    """The numbers are right, but not in their places.

    Cause: The turned pairs were joined by torch.cat, all first features
        before all second ones.
    Cure: torch.stack((…, …), dim=-1).flatten(-2) puts them side by side.
    """
    return pairs_to_halves(rope(x, offset=offset))


@mistake
def turned_the_other_way(x, offset):
    """It turns clockwise.

    Cause: The signs of the sines are exchanged. If queries and keys are both
        turned so, the distance alone counts, but with the other sign: before
        and behind have changed places.
    Cure: a cos - b sin, and a sin + b cos.
    """
    return turned(x, -angles(x, offset))


@mistake
def mirrored(x, offset):
    """Position 0 should change nothing, and yours changes every other sign.

    Cause: The second feature is a sin - b cos. That is no rotation: beside
        a cos + b sin it is a reflection, beside a cos - b sin lengths change.
    Cure: a sin + b cos.
    """
    angle = angles(x, offset)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack((a * cos - b * sin, a * sin - b * cos), dim=-1)
    return pairs.flatten(-2)


@mistake
def half_of_each_convention(x, offset):
    """It is no rotation: lengths change.

    Cause: Features are paired by halves (rotate_half), and angles are laid
        out for neighbours (repeat_interleave).
    Cure: Pair and angle must go together: for neighbours, a = x[..., 0::2]
        and b = x[..., 1::2] with one angle each.
    """
    angle = angles(x, offset).repeat_interleave(2, dim=-1)
    a, b = x.chunk(2, dim=-1)
    half = torch.cat((-b, a), dim=-1)
    return x * angle.cos().to(x.dtype) + half * angle.sin().to(x.dtype)


@mistake
def updated_in_between(x, offset):
    """It is no rotation: the second feature is made from the new first.

    Cause: a was overwritten before b was computed from it.
    Cure: Compute both from the old a and b.
    """
    angle = angles(x, offset)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    a = a * cos - b * sin
    return torch.stack((a, a * sin + b * cos), dim=-1).flatten(-2)


@mistake
def offset_ignored(x, offset):
    """Right as long as the first token stands at 0.

    Cause: The offset is not used. A model that writes with a cache would
        think that every new token is the first.
    Cure: torch.arange(offset, offset + n).
    """
    return rope(x)


@mistake
def offset_subtracted(x, offset):
    """Right as long as the first token stands at 0.

    Cause: The offset is subtracted from the positions.
    Cure: The first token stands at the offset, so add it.
    """
    return rope(x, offset=-offset)


@mistake
def counted_from_one(x, offset):
    """Your first token is turned as if it were the second.

    Cause: Positions are counted from 1.
    Cure: torch.arange(offset, offset + n).
    """
    return rope(x, offset=offset + 1)


@mistake
def the_two_is_missing(x, offset):
    """Right for one pair; with more, the later ones turn too fast.

    Cause: The exponent is -i/d for pair i.
    Cure: -2i/d: torch.arange(0, d, 2) / d.
    """
    p = angles(x, offset)[:, :1]
    d = x.shape[-1]
    pair = torch.arange(d // 2, dtype=torch.float64)
    return turned(x, p * 10_000.0 ** (-pair / d))


@mistake
def one_speed_for_all(x, offset):
    """Every pair turns by one radian a position.

    Cause: The frequencies are missing.
    Cure: Pair i turns by p 10000^(-2i/d).
    """
    return turned(x, angles(x, offset)[:, :1])


@mistake
def faster_and_faster(x, offset):
    """The later pairs should turn more slowly, and yours hurry.

    Cause: The exponent has the wrong sign.
    Cure: 10000^(-2i/d), or divide by 10000^(2i/d).
    """
    p, d = angles(x, offset)[:, :1], x.shape[-1]
    pair = torch.arange(0, d, 2, dtype=torch.float64)
    return turned(x, p * 10_000.0 ** (pair / d))


@mistake
def second_axis_is_time(x, offset):
    """Right for one sequence or a batch; with heads, tokens turn alike.

    Cause: Positions are counted along axis 1, which holds the heads in
        (batch, heads, n, d).
    Cure: Tokens are on the last axis but one, x.shape[-2].
    """
    if x.ndim < 4:
        return rope(x, offset=offset)
    return rope(x.transpose(1, 2), offset=offset).transpose(1, 2)


@mistake
def first_axis_is_time(x, offset):
    """Right for one sequence; in a batch, tokens turn by their sequence.

    Cause: Positions are counted along the first axis.
    Cure: Tokens are on the last axis but one, x.shape[-2].
    """
    moved = rope(x.transpose(0, -2), offset=offset)
    return moved.transpose(0, -2)


@mistake
def a_table_added(x, offset):
    """Position 0 should change nothing, and lengths should stay.

    Cause: Sines and cosines are added to the features.
    Cure: Turn the pairs: multiply.
    """
    where = sinusoidal(x.shape[-2], x.shape[-1], offset=offset)
    return x + where.to(x.dtype)


@mistake
def a_table_multiplied(x, offset):
    """Each feature is only scaled.

    Cause: Features were multiplied by cosines and sines one by one.
    Cure: A turned pair mixes its two features: a cos - b sin, a sin + b cos.
    """
    angle = angles(x, offset)
    waves = torch.stack((angle.cos(), angle.sin()), dim=-1).flatten(-2)
    return x * waves.to(x.dtype)


@mistake
def angles_in_low_precision(x, offset):
    """Right in float32; in bfloat16, tokens far out turn by wrong angles.

    Cause: Positions or angles are bfloat16, which has three digits: it
        cannot tell position 1001 from 1000.
    Cure: Compute the angles in float64 and convert their cosines and sines.
    """
    return turned(x, angles(x, offset, dtype=x.dtype))


@mistake
def exponent_doubled(x, offset):
    """Right for one pair; with more, the later ones turn too slowly.

    Cause: The exponent is -4i/d: torch.arange(0, d, 2) is 2i already, and it
        was multiplied by two once more.
    Cure: -2i/d, either 2 * torch.arange(d / 2) or torch.arange(0, d, 2).
    """
    p, d = angles(x, offset)[:, :1], x.shape[-1]
    twice = torch.arange(0, d, 2, dtype=torch.float64)
    return turned(x, p * 10_000.0 ** (-2 * twice / d))


@mistake
def in_degrees(x, offset):
    """Your pairs turn some 57 times too slowly.

    Cause: The angles were taken for degrees.
    Cure: They are radians, as torch.sin expects them: convert nothing.
    """
    return turned(x, angles(x, offset).deg2rad())


@mistake
def whole_turns(x, offset):
    """Your first pair does not turn at all.

    Cause: The angles were multiplied by 2 pi, and pair 0 goes all the way
        round at every position.
    Cure: Pair 0 turns by one radian a position, not by a full turn.
    """
    return turned(x, 2 * math.pi * angles(x, offset))


@mistake
def in_place(x, offset):
    """The output is right, but x itself has been turned with it.

    Cause: Features of x were assigned to.
    Cure: Put the new features into a new tensor.
    """
    x.data.copy_(rope(x, offset=offset))
    return x


PROBES = (
    Probe(
        "one pair turns by one radian a position",
        {"x": "n d", "offset": first(0)},
        PAIR,
        change=in_pairs,
    ),
    Probe(
        "of six features, each pair turns more slowly than the last",
        {"x": "n d", "offset": first(0)},
        EVEN,
        change=in_pairs,
        gradient=True,
    ),
    Probe(
        "the first token stands at the offset",
        {"x": "n d", "offset": first(7)},
        EVEN,
        change=in_pairs,
    ),
    Probe(
        "a position may be negative, if queries outnumber keys",
        {"x": "n d", "offset": first(-3)},
        EVEN,
        change=in_pairs,
    ),
    Probe(
        "each sequence of a batch is turned alike",
        {"x": "batch n d", "offset": first(0)},
        EVEN,
        change=in_pairs,
    ),
    Probe(
        "so is each head, with tokens on the last axis but one",
        {"x": "batch heads n d", "offset": first(2)},
        EVEN,
        change=in_pairs,
    ),
    Probe(
        "a single token has a position, too",
        {"x": "n d", "offset": first(5)},
        {"n": 1, "d": 4},
        change=in_pairs,
    ),
    Probe(
        "float64 stays float64, to the last digits",
        {"x": "n d", "offset": first(1000)},
        EVEN,
        dtype=torch.float64,
        change=in_pairs,
    ),
    Probe(
        "bfloat16 stays bfloat16, and turns by exact angles",
        {"x": "n d", "offset": first(1000)},
        EVEN,
        dtype=torch.bfloat16,
        change=in_pairs,
    ),
    Probe(
        "the order in memory does not matter",
        {"x": "batch n d", "offset": first(0)},
        EVEN,
        change=in_pairs_and_other_order,
    ),
)
MISTAKES = (
    halves_paired,
    sorted_into_halves,
    turned_the_other_way,
    mirrored,
    half_of_each_convention,
    updated_in_between,
    offset_ignored,
    offset_subtracted,
    counted_from_one,
    the_two_is_missing,
    one_speed_for_all,
    faster_and_faster,
    second_axis_is_time,
    first_axis_is_time,
    a_table_added,
    a_table_multiplied,
    angles_in_low_precision,
    *number_types.MISTAKES,
    exponent_doubled,
    in_degrees,
    whole_turns,
    in_place,
)
