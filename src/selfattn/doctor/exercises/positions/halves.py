"""`rope_halves(x, offset)`: features i and i + d/2, rotated as a pair."""

from dataclasses import replace

import torch

from selfattn.doctor.exercise import Exercise, Mistake, mistake
from selfattn.doctor.exercises.positions import number_types
from selfattn.doctor.exercises.positions import rope as rotations
from selfattn.doctor.exercises.positions.turning import angles
from selfattn.positions import (
    halves_to_pairs,
    pairs_to_halves,
    rope,
    rope_halves,
)


def by_halves(known: Mistake) -> Mistake:
    """The mistake of who pairs neighbours, made by who pairs halves."""

    def answer(x, offset):
        return pairs_to_halves(known.answer(halves_to_pairs(x), offset))

    return replace(known, answer=answer)


def waves(x, offset):
    """Cosines and sines of the angles, and the two halves of the features."""
    angle = angles(x, offset)
    a, b = x.chunk(2, dim=-1)
    return angle.cos().to(x.dtype), angle.sin().to(x.dtype), a, b


@mistake
def neighbours_paired(x, offset):
    """Right for a single pair; with more, other features are turned together.

    Cause: Neighbours are paired, 2i with 2i + 1, as on this page. That is
        RoPE as well, but weights trained for the one are noise to the other.
    Cure: Here feature i goes with i + d/2: a, b = x.chunk(2, dim=-1).
    """
    return rope(x, offset=offset)


@mistake
def put_back_as_neighbours(x, offset):
    """The numbers are right, but not in their places.

    Cause: The halves were turned, and then joined side by side, by
        torch.stack and flatten.
    Cure: torch.cat((…, …), dim=-1) puts the second half behind the first.
    """
    return halves_to_pairs(rope_halves(x, offset=offset))


@mistake
def taken_as_neighbours(x, offset):
    """Neighbours are turned, and then parted.

    Cause: The pairs are x[..., 0::2] and x[..., 1::2]; only torch.cat, at
        the end, goes by halves.
    Cure: Go by halves at the start, too: a, b = x.chunk(2, dim=-1).
    """
    return pairs_to_halves(rope(x, offset=offset))


@mistake
def half_of_each_convention(x, offset):
    """It is no rotation: lengths change.

    Cause: Features are paired by halves (rotate_half), and angles are laid
        out for neighbours (repeat_interleave).
    Cure: Pair and angle must go together: for halves, all angles for the
        first half and all again for the second, torch.cat((angle, angle),
        dim=-1).
    """
    return rotations.half_of_each_convention.answer(x, offset)


@mistake
def no_minus(x, offset):
    """It is no rotation: lengths change.

    Cause: The first feature of a pair is a cos + b sin: rotate_half lacks
        its minus.
    Cure: a cos - b sin, and a sin + b cos; or torch.cat((-b, a), dim=-1).
    """
    cos, sin, a, b = waves(x, offset)
    return torch.cat((a * cos + b * sin, a * sin + b * cos), dim=-1)


@mistake
def mirrored(x, offset):
    """Position 0 should change nothing; yours changes the second half's signs.

    Cause: The second feature of a pair is a sin - b cos. That is no rotation.
    Cure: a sin + b cos.
    """
    cos, sin, a, b = waves(x, offset)
    return torch.cat((a * cos - b * sin, a * sin - b * cos), dim=-1)


@mistake
def in_place(x, offset):
    """The output is right, but x itself has been turned with it.

    Cause: Features of x were assigned to.
    Cure: Put the new features into a new tensor.
    """
    x.data.copy_(rope_halves(x, offset=offset))
    return x


def told_apart():
    """Those of number types of which no two agree where halves are paired."""
    same = number_types.float32_comes_back_of_exact_angles
    return [known for known in number_types.MISTAKES if known is not same]


HALVES = Exercise(
    "positions/halves",
    asks="each pair (i, i + d/2) turned by the angle p 10000^(-2i/d)",
    solution=lambda x, offset: rope_halves(x, offset=offset),
    probes=rotations.PROBES,
    mistakes=(
        neighbours_paired,
        put_back_as_neighbours,
        taken_as_neighbours,
        half_of_each_convention,
        no_minus,
        mirrored,
        rotations.a_table_added,
        in_place,
        *map(
            by_halves,
            (
                rotations.turned_the_other_way,
                rotations.updated_in_between,
                rotations.offset_ignored,
                rotations.offset_subtracted,
                rotations.counted_from_one,
                rotations.the_two_is_missing,
                rotations.one_speed_for_all,
                rotations.faster_and_faster,
                rotations.second_axis_is_time,
                rotations.first_axis_is_time,
                rotations.a_table_multiplied,
                rotations.angles_in_low_precision,
                *told_apart(),
                rotations.exponent_doubled,
                rotations.in_degrees,
                rotations.whole_turns,
            ),
        ),
    ),
)
