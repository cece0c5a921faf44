"""`attend(q, k, v, mask)`: a mask that comes in time."""

import math
from dataclasses import replace

import torch

from selfattn.doctor.exercise import Exercise, mistake, mistake_as
from selfattn.doctor.exercises.dot_product import attention, weights
from selfattn.doctor.exercises.dot_product.attention import (
    QKV,
    UNDER_A_MASK,
    hidden,
)
from selfattn.doctor.exercises.dot_product.weights import scaled
from selfattn.doctor.probes import (
    Probe,
    loud_first_key,
    louder,
    other_keys,
    some_keys,
)
from selfattn.dot_product import attention as solution
from selfattn.dot_product import masked_softmax


def deafening_first_key(inputs):
    """Make its scores differ by more than a double's exponent can hold."""
    inputs["k"][..., 0, :] *= 4000


def far_below(inputs):
    """Give every key a score of billions below zero, each lower by as much."""
    q, k = inputs["q"], inputs["k"]
    inputs["q"] = q.abs()
    j = torch.arange(k.shape[-2]).to(k.dtype)
    inputs["k"] = (-1e11 * (1 + j))[:, None].expand(k.shape).clone()


@mistake_as(attention.mask_after_softmax_mended)
def mask_after_softmax_mended(q, k, v, mask):
    late = scaled(q, k).softmax(dim=-1) * mask
    return late / late.sum(dim=-1, keepdim=True) @ v


@mistake
def late_in_double(q, k, v, mask):
    """A forbidden key with a very large score turns its row into NaN.

    Cause: The mask comes after the softmax. In double precision what is
        left may be smaller, e^-745, but it ends there, too.
    Cure: Hide the scores before the softmax:
        scores.masked_fill(~mask, -math.inf).
    """
    late = scaled(q, k).double().softmax(dim=-1) * mask
    return (late / late.sum(dim=-1, keepdim=True)).to(v.dtype) @ v


@mistake_as(attention.mask_after_softmax)
def mask_after_softmax(q, k, v, mask):
    return scaled(q, k).softmax(dim=-1) * mask @ v


@mistake
def a_small_number_in_the_denominator(q, k, v, mask):
    """There is no NaN any more, but a row with a loud forbidden key gets 0.

    Cause: A small number was added to the sum. Nothing over a small number
        is nothing: what the allowed keys had is lost already.
    Cure: Hide the scores before the softmax:
        scores.masked_fill(~mask, -math.inf).
    """
    late = scaled(q, k).softmax(dim=-1) * mask
    return late / (late.sum(dim=-1, keepdim=True) + 1e-9) @ v


@mistake
def nan_wiped_out(q, k, v, mask):
    """There is no NaN any more, but a row with a loud forbidden key gets 0.

    Cause: NaN was replaced by 0 after the division. The row is still lost.
    Cure: Hide the scores before the softmax:
        scores.masked_fill(~mask, -math.inf).
    """
    late = scaled(q, k).softmax(dim=-1) * mask
    late = late / late.sum(dim=-1, keepdim=True)
    return late.nan_to_num() @ v


@mistake
def masked_twice(q, k, v, mask):
    """A forbidden key still makes the others quieter.

    Cause: Its score is 0 in the softmax, and its weight is wiped out after.
    Cure: Once is enough, if it is before the softmax and -math.inf.
    """
    return hidden(scaled(q, k), mask, 0.0).softmax(dim=-1) * mask @ v


@mistake
def scores_of_zero(q, k, v, mask):
    """Forbidden keys still get attention.

    Cause: Their scores are filled with 0, or multiplied by the mask, which
        is the same: exp(0) = 1 is a vote.
    Cure: Fill with -math.inf: scores.masked_fill(~mask, -math.inf).
    """
    return hidden(scaled(q, k), mask, 0.0).softmax(dim=-1) @ v


@mistake_as(attention.mask_upside_down)
def mask_upside_down(q, k, v, mask):
    return masked_softmax(scaled(q, k), ~mask) @ v


@mistake_as(attention.mask_on_its_side)
def mask_on_its_side(q, k, v, mask):
    return masked_softmax(scaled(q, k), mask.mT) @ v


@mistake_as(attention.mask_ignored)
def mask_ignored(q, k, v, mask):
    return scaled(q, k).softmax(dim=-1) @ v


@mistake_as(attention.mask_added_to_the_scores)
def mask_added_to_the_scores(q, k, v, mask):
    return (scaled(q, k) + mask).softmax(dim=-1) @ v


@mistake
def not_negative_enough(q, k, v, mask):
    """A forbidden key with a large score is seen after all.

    Cause: A number such as -100 is added to forbidden scores, and there are
        scores larger than 100.
    Cure: Minus infinity: scores.masked_fill(~mask, -math.inf).
    """
    return (scaled(q, k) - 100.0 * ~mask).softmax(dim=-1) @ v


@mistake
def a_large_number_filled_in(q, k, v, mask):
    """Where the allowed scores are lower still, forbidden keys get it all.

    Cause: A large negative number such as -1e9 stands where the mask
        forbids, and the scores beside it may be lower.
    Cure: Minus infinity: scores.masked_fill(~mask, -math.inf).
    Chapter: masks#large-and-negative
    """
    return hidden(scaled(q, k), mask, -1e9).softmax(dim=-1) @ v


@mistake
def a_large_number_added(q, k, v, mask):
    """A forbidden key is seen where the allowed scores are far below its own.

    Cause: A large negative number such as -1e9 is added to forbidden scores,
        and two scores may differ by more.
    Cure: Minus infinity: scores.masked_fill(~mask, -math.inf).
    Chapter: masks#large-and-negative
    """
    return (scaled(q, k) - 1e9 * ~mask).softmax(dim=-1) @ v


@mistake
def exponentials_times_mask(q, k, v, mask):
    """A score of 89 turns its row into NaN, be its key forbidden or not.

    Cause: You take exponentials yourself. That of 89 is infinity in float32;
        infinity times zero is NaN, and so is infinity over infinity.
    Cure: Hide the scores and leave the exponentials to softmax, which
        subtracts the largest score first:
        scores.masked_fill(~mask, -math.inf).softmax(dim=-1).
    Chapter: masks#masking-too-late
    """
    powers = scaled(q, k).exp() * mask
    return powers / powers.sum(dim=-1, keepdim=True) @ v


@mistake
def zero_times_infinity(q, k, v, mask):
    """There is NaN in every row, even if the mask allows everything.

    Cause: (1 - mask) * -inf is zero times infinity where a query may look.
        (A row in which all is hidden would be NaN as well.)
    Cure: Do not multiply: scores.masked_fill(~mask, -math.inf).
    Chapter: masks#the-equation
    """
    return (scaled(q, k) + ~mask * -math.inf).softmax(dim=-1) @ v


@mistake
def filled_after_the_softmax(q, k, v, mask):
    """Your output is infinite as soon as a key is forbidden.

    Cause: Minus infinity is filled in after the softmax, among the weights,
        and multiplied by the values.
    Cure: Fill it into the scores, before the softmax:
        scores.masked_fill(~mask, -math.inf).softmax(dim=-1).
    """
    return hidden(scaled(q, k).softmax(dim=-1), mask, -math.inf) @ v


@mistake
def a_second_softmax_to_mend_it(q, k, v, mask):
    """Your weights are too even, also where nothing is forbidden.

    Cause: A softmax was taken of weights, once they were masked: of numbers
        from 0 to 1 it makes nearly equal ones.
    Cure: One softmax, of the scores, hidden before it:
        scores.masked_fill(~mask, -math.inf).softmax(dim=-1).
    """
    late = hidden(scaled(q, k).softmax(dim=-1), mask, -math.inf)
    return late.softmax(dim=-1) @ v


@mistake
def a_second_softmax_over_zeros(q, k, v, mask):
    """Your weights are too even, and forbidden keys get some.

    Cause: A softmax was taken of weights, once the forbidden ones were 0:
        it makes nearly equal ones of all, and exp(0) = 1 is a vote.
    Cure: One softmax, of the scores, hidden before it:
        scores.masked_fill(~mask, -math.inf).softmax(dim=-1).
    """
    late = scaled(q, k).softmax(dim=-1) * mask
    return late.softmax(dim=-1) @ v


@mistake
def a_mask_of_its_own(q, k, v, mask):
    """Later keys are hidden, whatever the mask says.

    Cause: A causal mask is made, and the one that was handed over is not
        used.
    Cure: scores.masked_fill(~mask, -math.inf), with the mask that comes in.
    """
    scores = scaled(q, k)
    own = torch.ones_like(scores, dtype=torch.bool).tril()
    return hidden(scores, own).softmax(dim=-1) @ v


@mistake_as(weights.no_scale)
def no_scale(q, k, v, mask):
    return masked_softmax(q @ k.mT, mask) @ v


@mistake_as(weights.softmax_that_overflows)
def softmax_that_overflows(q, k, v, mask):
    powers = hidden(scaled(q, k), mask, -math.inf).exp()
    return powers / powers.sum(dim=-1, keepdim=True) @ v


# Who fails this one is not to look for the fault in the mask alone.
NOTHING_FORBIDDEN = "where nothing is forbidden, it is plain attention"

TOO_LATE = Exercise(
    "masks/too_late",
    asks="attention in which a forbidden key has no influence",
    solution=lambda q, k, v, mask: solution(q, k, v, mask=mask),
    probes=(
        replace(UNDER_A_MASK[0], claim=NOTHING_FORBIDDEN),
        *UNDER_A_MASK[1:],
        Probe(
            "a forbidden key has no influence, even in double precision",
            {**QKV, "mask": other_keys},
            change=deafening_first_key,
        ),
        Probe(
            "a forbidden key has no influence on gradients, either",
            {**QKV, "mask": other_keys},
            change=loud_first_key,
            gradient=True,
        ),
        Probe(
            "allowed keys may have scores in the hundreds",
            {**QKV, "mask": some_keys},
            change=louder("q", "k", times=8.0),
        ),
        Probe(
            "a forbidden key has no influence, however low the other scores",
            {**QKV, "mask": some_keys},
            change=far_below,
        ),
    ),
    mistakes=(
        mask_after_softmax_mended,
        late_in_double,
        mask_after_softmax,
        a_small_number_in_the_denominator,
        nan_wiped_out,
        masked_twice,
        scores_of_zero,
        mask_upside_down,
        mask_on_its_side,
        mask_ignored,
        mask_added_to_the_scores,
        not_negative_enough,
        a_large_number_filled_in,
        a_large_number_added,
        exponentials_times_mask,
        zero_times_infinity,
        no_scale,
        softmax_that_overflows,
        filled_after_the_softmax,
        a_second_softmax_to_mend_it,
        a_second_softmax_over_zeros,
        a_mask_of_its_own,
        attention.divided_by_d,
        attention.softmax_over_queries,
    ),
)
