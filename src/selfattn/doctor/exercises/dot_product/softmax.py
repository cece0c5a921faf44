"""`stable_softmax(scores)`: scores of any size, and no NaN."""

import math

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import SQUARE, Probe, in_other_order, louder


def near_ten_thousand(inputs):
    """All scores close to 10,000."""
    inputs["scores"] += 10_000


def near_minus_ten_thousand(inputs):
    """All scores close to -10,000."""
    inputs["scores"] -= 10_000


def rows_apart(inputs):
    """The first row close to -10,000, the second to 0, and so on."""
    rows = torch.arange(inputs["scores"].shape[-2])[:, None] - 1
    inputs["scores"] += 10_000 * rows


def no_two_alike(inputs):
    """No ties: there `max` gives one of them the gradient, `amax` all."""
    scores = inputs["scores"]
    inputs["scores"] += torch.arange(scores.numel()).view_as(scores) / 128


def one_forbidden(inputs):
    """One score of each row is -inf, but not a whole row."""
    scores = inputs["scores"]
    scores[..., 0] = -math.inf if scores.shape[-1] > 1 else 0.0


ROWS = {"scores": "n_q n_k"}

# Next to 10,000 the float32 numbers lie 0.001 apart, and a right answer may
# have come by there.
COARSE = 0.002


def shared(powers, dim=-1):
    """Divide by the sum."""
    return powers / powers.sum(dim=dim, keepdim=True)


def shifted(scores, dim=-1):
    """Subtract the maximum."""
    return scores - scores.amax(dim=dim, keepdim=True)


@mistake
def overflows(scores):
    """You get NaN when a score is 89 or more, or all of a row -104 or less.

    Cause: In float32, exp of the one is infinite and of the others zero.
    Cure: Subtract each row's maximum first; it changes nothing on paper:
        scores - scores.amax(dim=-1, keepdim=True).
    """
    return shared(scores.exp())


@mistake
def wrong_axis(scores):
    """Your columns sum to one, and your rows do not.

    Cause: It runs along dim=-2.
    Cure: Take maximum and sum along the last axis: dim=-1, keepdim=True.
    """
    return shared(shifted(scores, -2).exp(), -2)


@mistake
def wrong_axis_and_overflows(scores):
    """Your columns sum to one instead of your rows, and large scores give NaN.

    Cause: The sum runs along dim=-2, and exp meets the bare scores.
    Cure: Sum along dim=-1, and subtract each row's maximum before exp.
    """
    return shared(scores.exp(), -2)


@mistake
def sum_over_the_wrong_axis(scores):
    """Your columns sum to something like one, and your rows do not.

    Cause: The maximum is each row's, but the sum runs along dim=-2.
    Cure: Sum along the last axis: dim=-1, keepdim=True.
    """
    return shared(shifted(scores).exp(), -2)


@mistake
def one_maximum_for_the_whole_table(scores):
    """Rows that lie far below the others turn into NaN.

    Cause: One maximum is subtracted everywhere, so that in a low row every
        exponential is zero, and 0/0 is not a number.
    Cure: Subtract each row's own: scores.amax(dim=-1, keepdim=True).
    """
    return shared((scores - scores.max()).exp())


@mistake
def maximum_over_the_wrong_axis(scores):
    """Large scores still overflow or vanish.

    Cause: It is each column's maximum that is subtracted.
    Cure: Subtract each row's: scores.amax(dim=-1, keepdim=True).
    """
    return shared(shifted(scores, -2).exp())


@mistake
def clamped(scores):
    """All large scores get the same weight.

    Cause: They are clamped to a largest value, and so made equal.
    Cure: Shift them instead: subtract each row's maximum.
    """
    return shared(scores.clamp(-80, 80).exp())


@mistake
def clamped_from_above(scores):
    """All large scores get the same weight, and very low ones NaN.

    Cause: Scores are clamped to a largest value, and so made equal.
    Cure: Shift them instead: subtract each row's maximum.
    """
    return shared(scores.clamp(max=80).exp())


@mistake
def divided_by_the_maximum(scores):
    """Your weights change when the same number is added to all scores.

    Cause: The scores are divided by the maximum.
    Cure: Only a difference leaves softmax as it is: subtract the maximum.
    """
    return shared((scores / scores.amax(dim=-1, keepdim=True)).exp())


@mistake
def largest_absolute_value(scores):
    """Rows of large negative scores turn into NaN.

    Cause: The largest absolute value is subtracted, which pushes negative
        scores down even further.
    Cure: Subtract the largest value, without abs.
    """
    return shared((scores - scores.abs().amax(-1, keepdim=True)).exp())


@mistake
def mean_subtracted(scores):
    """A row with one very large score still overflows.

    Cause: The mean is subtracted, and a score may lie far above it.
    Cure: Subtract the maximum, so that nothing is above zero.
    """
    return shared((scores - scores.mean(dim=-1, keepdim=True)).exp())


@mistake
def minimum_subtracted(scores):
    """A row with one very low score makes the others overflow.

    Cause: The minimum is subtracted, so that all others are above zero.
    Cure: Subtract the maximum, so that nothing is.
    """
    return shared((scores - scores.amin(dim=-1, keepdim=True)).exp())


@mistake
def exponentials_not_divided(scores):
    """Your largest weight is always one, and your rows sum to more.

    Cause: The exponentials are not divided by their sum.
    Cure: e / e.sum(dim=-1, keepdim=True).
    """
    return shifted(scores).exp()


@mistake
def logarithm_returned(scores):
    """Your weights are negative: they are logarithms.

    Cause: This is log-softmax.
    Cure: Leave out the logarithm, or take exp of it.
    """
    return scores.log_softmax(dim=-1)


@mistake
def no_keepdim(scores):
    """It fails on most tables, and on a square one the columns are divided.

    Cause: Without keepdim a sum of shape (n,) lines up with the columns.
    Cure: e / e.sum(dim=-1, keepdim=True).
    """
    return shifted(scores).exp() / shifted(scores).exp().sum(dim=-1)


@mistake
def sum_over_the_whole_table(scores):
    """Your whole table sums to one, not each row.

    Cause: .sum() without dim adds up everything.
    Cure: e.sum(dim=-1, keepdim=True).
    """
    return shifted(scores).exp() / shifted(scores).exp().sum()


@mistake
def powers_of_two(scores):
    """Your rows sum to one, but your weights are too flat.

    Cause: They are powers of 2, not of e.
    Cure: Use exp.
    """
    return shared(torch.exp2(shifted(scores)))


@mistake
def shifted_in_place(scores):
    """Your weights are right, but the caller's scores are not what they were.

    Cause: An in-place operation such as scores -= ... writes into the input.
    Cure: Make a new tensor: scores = scores - ...
    """
    scores -= scores.amax(dim=-1, keepdim=True)
    return shared(scores.exp())


SOFTMAX = Exercise(
    "dot_product/softmax",
    asks="softmax over the last axis, for scores of any size",
    solution=lambda scores: scores.softmax(dim=-1),
    probes=(
        Probe(
            "it is exp(s) / sum of exp(s), by rows",
            ROWS,
            change=no_two_alike,
            gradient=True,
        ),
        Probe("rows are rows, when there are as many columns", ROWS, SQUARE),
        Probe(
            "one row without a table will do",
            {"scores": "n_k"},
            needs=("single",),
        ),
        Probe(
            "it is over the last axis of many",
            {"scores": "batch n_q n_k"},
            needs=("batch",),
        ),
        Probe("a single score gets the weight one", ROWS, {"n_k": 1}),
        Probe(
            "float64 stays float64",
            ROWS,
            dtype=torch.float64,
            needs=("float64",),
        ),
        Probe(
            "scores near 10,000 do not overflow",
            ROWS,
            change=near_ten_thousand,
            tolerance=COARSE,
        ),
        Probe(
            "scores near -10,000 do not vanish",
            ROWS,
            change=near_minus_ten_thousand,
            tolerance=COARSE,
        ),
        Probe(
            "rows may lie 10,000 apart",
            ROWS,
            change=rows_apart,
            tolerance=COARSE,
        ),
        Probe(
            "the scores of one row may lie 10,000 apart",
            ROWS,
            change=louder("scores", times=10_000.0),
            tolerance=COARSE,
        ),
        Probe(
            "-inf gets the weight zero",
            ROWS,
            change=one_forbidden,
            needs=("forbidden",),
        ),
        Probe(
            "the order in memory does not matter",
            {"scores": "batch n_q n_k"},
            change=in_other_order,
            needs=("batch",),
        ),
    ),
    mistakes=(
        overflows,
        wrong_axis,
        wrong_axis_and_overflows,
        sum_over_the_wrong_axis,
        one_maximum_for_the_whole_table,
        maximum_over_the_wrong_axis,
        clamped,
        clamped_from_above,
        divided_by_the_maximum,
        largest_absolute_value,
        mean_subtracted,
        minimum_subtracted,
        exponentials_not_divided,
        logarithm_returned,
        no_keepdim,
        sum_over_the_whole_table,
        powers_of_two,
        shifted_in_place,
    ),
)
