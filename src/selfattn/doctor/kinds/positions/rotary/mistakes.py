"""The mistakes of the kind `rope`, besides those of the exercise."""

import torch

from selfattn.doctor.exercise import mistake, mistake_as
from selfattn.doctor.exercises.positions import rope as rotations
from selfattn.doctor.exercises.positions.rope import angles, turned
from selfattn.positions import halves_to_pairs, pairs_to_halves, rope


@mistake
def nothing_turned(x, offset):
    """Nothing is turned: it returns what it was given.

    Cause: The rotated tensor is made, and not returned or not assigned.
    Cure: q = rotate(q), k = rotate(k).
    Chapter: positions
    """
    return x.clone()


@mistake
def only_half_of_the_features(x, offset):
    """The second half of the features is not turned.

    Cause: The angles are made for half of the width, rotary_dim = d / 2. Some
        models turn a part on purpose: GPT-J and GPT-NeoX a quarter.
    Cure: All pairs turn, unless the weights were trained otherwise.
    Chapter: positions
    """
    d = x.shape[-1] // 4 * 2
    front = rope(x[..., :d], offset=offset) if d else x[..., :0]
    return torch.cat((front, x[..., d:]), dim=-1)


@mistake
def sines_without_cosines(x, offset):
    """Lengths change: position 0 gives zeros beside what it was given.

    Cause: The cosine's term is missing, or the sine stands in its place.
    Cure: a cos - b sin, and a sin + b cos.
    Chapter: positions
    """
    angle = angles(x, offset)
    return turned(x, angle) - x * angle.cos().repeat_interleave(2, dim=-1).to(
        x.dtype
    )


@mistake
def base_of_a_thousand(x, offset):
    """Your slow pairs turn too fast.

    Cause: The base is 1000.
    Cure: 10000, or the base that your weights were trained with.
    Chapter: positions
    """
    d = x.shape[-1]
    rate = 1000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    steps = torch.arange(offset, offset + x.shape[-2], dtype=torch.float64)
    return turned(x, steps[:, None] * rate)


@mistake
def offset_off_by_one(x, offset):
    """Word by word, every token is turned as if it stood beside itself.

    Cause: The offset counts the new token as well, or leaves out the last
        that is kept.
    Cure: It is the number of tokens in the cache: the first is at 0.
    Chapter: positions
    """
    return rope(x, offset=offset + (offset > 0))


@mistake_as(offset_off_by_one)
def offset_one_short(x, offset):
    return rope(x, offset=offset - (offset > 0))


@mistake_as(offset_off_by_one)
def counted_from_minus_one(x, offset):
    return rope(x, offset=offset - 1)


def by_float32(known, moved):
    """The same mistake, of angles that are float32, as most write them."""

    def answer(x, offset):
        return turned(x, angles(x, moved(offset), dtype=torch.float32))

    return mistake_as(known)(answer)


FLOATS = (
    by_float32(rotations.counted_from_one, lambda offset: offset + 1),
    by_float32(offset_off_by_one, lambda offset: offset + (offset > 0)),
    by_float32(offset_off_by_one, lambda offset: offset - (offset > 0)),
    by_float32(offset_off_by_one, lambda offset: offset - 1),
)


@mistake_as(rotations.halves_paired)
def halves_paired_and_put_side_by_side(x, offset):
    return rope(halves_to_pairs(x), offset=offset)


@mistake_as(rotations.halves_paired)
def neighbours_paired_and_put_into_halves(x, offset):
    return rope(pairs_to_halves(x), offset=offset)


@mistake_as(rotations.sorted_into_halves)
def halves_put_side_by_side(x, offset):
    return halves_to_pairs(rope(x, offset=offset))


DEVIATIONS = (
    base_of_a_thousand,
    offset_off_by_one,
    offset_one_short,
    counted_from_minus_one,
    *FLOATS,
    # What of two conventions is mixed, seen from either.
    halves_paired_and_put_side_by_side,
    neighbours_paired_and_put_into_halves,
    halves_put_side_by_side,
)
MISTAKES = (
    *rotations.MISTAKES,
    nothing_turned,
    only_half_of_the_features,
    sines_without_cosines,
)
