"""`attend(q, k, v, mask=None)`: the whole of attention."""

import math

import torch

from selfattn.doctor.exercise import Exercise, mistake, mistake_as
from selfattn.doctor.exercises.dot_product import weights
from selfattn.doctor.exercises.dot_product.weights import scaled
from selfattn.doctor.probes import (
    SQUARE,
    Probe,
    all_keys,
    loud_first_key,
    no_keys_for_the_first,
    other_keys,
    past_keys,
    real_keys,
    some_keys,
)
from selfattn.dot_product import attention, masked_softmax

QKV = {**weights.QK, "v": "n_k d_v"}
QKV_BATCH = {**weights.QK_BATCH, "v": "batch n_k d_v"}
QKV_HEADS = {**weights.QK_HEADS, "v": "batch heads n_k d_v"}

UNDER_A_MASK = (
    Probe(
        "a mask that allows everything changes nothing",
        {**QKV, "mask": all_keys},
    ),
    Probe(
        "a query sees the keys that are True in its row, and no others",
        {**QKV, "mask": some_keys},
        gradient=True,
    ),
    Probe(
        "under a causal mask, a query sees no later key",
        {**QKV, "mask": past_keys},
        SQUARE,
    ),
    Probe(
        "a mask may have one row for all queries of a sequence",
        {**QKV_BATCH, "mask": real_keys},
    ),
    Probe(
        "a forbidden key has no influence, however large its score",
        {**QKV, "mask": other_keys},
        change=loud_first_key,
    ),
)


def hidden(scores, mask, fill=-math.inf):
    """The scores, with another number where the mask forbids."""
    return scores if mask is None else scores.masked_fill(~mask, fill)


@mistake_as(weights.no_scale)
def no_scale(q, k, v, mask=None):
    return masked_softmax(q @ k.mT, mask) @ v


@mistake_as(weights.divided_by_d)
def divided_by_d(q, k, v, mask=None):
    return masked_softmax(q @ k.mT / q.shape[-1], mask) @ v


@mistake
def scaled_by_the_width_of_v(q, k, v, mask=None):
    """Your weights depend on how many features a value has.

    Cause: The scores are divided by √d_v.
    Cure: They are sums over the features of q and k, so √d is theirs:
        math.sqrt(q.shape[-1]).
    Chapter: scaling
    """
    return masked_softmax(q @ k.mT / math.sqrt(v.shape[-1]), mask) @ v


@mistake
def the_output_is_scaled(q, k, v, mask=None):
    """Your output is too short: the weights in it sum to 1/√d.

    Cause: √d divides what comes after the softmax.
    Cure: Divide the scores, before it.
    Chapter: scaling
    """
    return masked_softmax(q @ k.mT, mask) @ v / math.sqrt(q.shape[-1])


@mistake_as(weights.softmax_over_queries)
def softmax_over_queries(q, k, v, mask=None):
    return hidden(scaled(q, k), mask).softmax(dim=-2).nan_to_num() @ v


@mistake_as(weights.softmax_over_axis_1)
def softmax_over_axis_1(q, k, v, mask=None):
    return hidden(scaled(q, k), mask).softmax(dim=1).nan_to_num() @ v


@mistake_as(weights.all_axes_reversed)
def all_axes_reversed(q, k, v, mask=None):
    return masked_softmax(q @ k.T / math.sqrt(q.shape[-1]), mask) @ v


@mistake_as(weights.first_axes_exchanged)
def first_axes_exchanged(q, k, v, mask=None):
    crossed = q @ k.transpose(0, 1)
    return masked_softmax(crossed / math.sqrt(q.shape[-1]), mask) @ v


@mistake
def mask_ignored(q, k, v, mask=None):
    """Every query sees every key, whatever the mask says.

    Cause: The mask is never used.
    Cure: Put -inf where it is False, before the softmax:
        scores.masked_fill(~mask, -math.inf).
    Chapter: masks
    """
    return scaled(q, k).softmax(dim=-1) @ v


@mistake
def mask_upside_down(q, k, v, mask=None):
    """Your queries see just the keys that they must not see.

    Cause: Scores are hidden where the mask is True. Here True means “may
        attend”.
    Cure: Turn it round: masked_fill(~mask, ...).
    Chapter: masks#two-meanings-of-true
    """
    return masked_softmax(scaled(q, k), None if mask is None else ~mask) @ v


@mistake
def mask_on_its_side(q, k, v, mask=None):
    """Key i sees query j where query i should see key j.

    Cause: The mask is transposed; it shows only if it is not symmetric.
    Cure: Its rows are queries and its columns keys, as in the scores. Use
        it as it is.
    Chapter: masks
    """
    return masked_softmax(scaled(q, k), None if mask is None else mask.mT) @ v


@mistake
def mask_after_softmax(q, k, v, mask=None):
    """Your rows sum to less than one as soon as a key is forbidden.

    Cause: The weights are masked after the softmax has shared them out.
    Cure: Hide the scores before it: scores.masked_fill(~mask, -math.inf).
    Chapter: masks#masking-too-late
    """
    full = scaled(q, k).softmax(dim=-1)
    return (full if mask is None else full * mask) @ v


@mistake
def mask_after_softmax_mended(q, k, v, mask=None):
    """A forbidden key with a large score turns its row into NaN.

    Cause: Masking after the softmax and dividing by what is left is right
        on paper; but when nothing is left that a float can hold, it is 0/0.
    Cure: Hide the scores before it: scores.masked_fill(~mask, -math.inf).
    Chapter: masks#masking-too-late
    """
    full = scaled(q, k).softmax(dim=-1)
    late = full if mask is None else full * mask
    return late / late.sum(dim=-1, keepdim=True) @ v


@mistake
def masked_with_zero(q, k, v, mask=None):
    """Forbidden keys still get attention.

    Cause: Their scores are 0, set so or multiplied by the mask, and
        exp(0) = 1 is a vote.
    Cure: Set them to -inf, whose exponential is 0:
        scores.masked_fill(~mask, -math.inf).
    Chapter: masks#zero-is-a-vote
    """
    return hidden(scaled(q, k), mask, 0.0).softmax(dim=-1) @ v


@mistake
def masked_with_zero_and_empty_rows_wiped(q, k, v, mask=None):
    """Forbidden keys still get attention, unless all keys are forbidden.

    Cause: Their scores are 0, set so or multiplied by the mask, and
        exp(0) = 1 is a vote. That you wipe out empty rows is right.
    Cure: Set them to -inf, whose exponential is 0:
        scores.masked_fill(~mask, -math.inf).
    Chapter: masks#zero-is-a-vote
    """
    output = masked_with_zero(q, k, v, mask)
    return output if mask is None else output * mask.any(-1, keepdim=True)


@mistake
def mask_added_to_the_scores(q, k, v, mask=None):
    """Allowed keys get e times more weight, and no key is forbidden.

    Cause: A boolean mask was added to the scores, as ones and zeros.
    Cure: It is no number: scores.masked_fill(~mask, -math.inf).
    Chapter: masks#two-meanings-of-true
    """
    return (scaled(q, k) + (0 if mask is None else mask)).softmax(-1) @ v


@mistake
def empty_row_gives_nan(q, k, v, mask=None):
    """A query that may see nothing gets NaN, which spreads by the gradients.

    Cause: Softmax of a row of -inf is 0/0.
    Cure: Here such a query gets zeros: find the empty rows, give them any
        finite scores, and wipe out their weights afterwards.
    Chapter: masks#a-row-with-nothing-in-it
    """
    return hidden(scaled(q, k), mask).softmax(dim=-1) @ v


@mistake
def empty_row_gives_the_average(q, k, v, mask=None):
    """A query that may see nothing gets the average of all values.

    Cause: Forbidden scores are a large negative number such as -1e9; where
        all are forbidden, all are equal.
    Cure: Here such a query gets zeros: wipe out the weights of empty rows.
    Chapter: masks#large-and-negative
    """
    return hidden(scaled(q, k), mask, -1e9).softmax(dim=-1) @ v


@mistake
def large_negative_number_added(q, k, v, mask=None):
    """A query that may see nothing sees everything.

    Cause: A large negative number such as -1e9 is added to forbidden scores.
        Where all are forbidden, it cancels out.
    Cure: Here such a query gets zeros: wipe out the weights of empty rows.
    Chapter: masks#large-and-negative
    """
    added = 0 if mask is None else ~mask * -1e9
    return (scaled(q, k) + added).softmax(dim=-1) @ v


@mistake
def keys_and_values_swapped(q, k, v, mask=None):
    """It fails unless keys and values have equally many features.

    Cause: Queries are compared with the values, and the keys are averaged.
    Cure: Compare with keys, average values: softmax(q kᵀ / √d) v.
    """
    return masked_softmax(scaled(q, v), mask) @ k


@mistake
def weights_on_their_side(q, k, v, mask=None):
    """It fails unless there are as many queries as keys.

    Cause: The transposed weights are multiplied with the values.
    Cure: Row i of the weights belongs to query i, so: weights @ v.
    """
    return masked_softmax(scaled(q, k), mask).mT @ v


@mistake
def weights_returned(q, k, v, mask=None):
    """You return the weights.

    Cause: The last step is missing.
    Cure: Average the values with them: weights @ v.
    """
    return masked_softmax(scaled(q, k), mask)


@mistake_as(weights.softmax_that_overflows)
def softmax_that_overflows(q, k, v, mask=None):
    powers = hidden(scaled(q, k), mask).exp()
    empty = powers.sum(dim=-1, keepdim=True) == 0
    return powers / (powers.sum(dim=-1, keepdim=True) + empty) @ v


@mistake
def computed_in_float32(q, k, v, mask=None):
    """In float64, only the first seven digits of your output are right.

    Cause: Something in between is float32.
    Cure: Leave out .float(), and make new tensors with the input's dtype.
    """
    output = attention(q.float(), k.float(), v.float(), mask=mask)
    return output.to(q.dtype)


@mistake
def detached(q, k, v, mask=None):
    """The output is right, but its gradient, or part of it, is lost.

    Cause: Something on the way is cut off from the inputs, by .detach(),
        .data, .item(), numpy or torch.no_grad(), so that no gradient flows
        back through it.
    Cure: Stay with differentiable operations on tensors.
    """
    return attention(q, k, v, mask=mask).detach()


ATTENTION = Exercise(
    "dot_product/attention",
    asks="softmax(q kᵀ / √d) v, where mask is True; zeros for an empty row",
    solution=attention,
    by_name=("mask",),
    probes=(
        Probe("it is softmax(q kᵀ / √d) v", QKV, gradient=True),
        Probe("rows are rows, when all axes are equally long", QKV, SQUARE),
        Probe("a single key gives its value to all", QKV, {"n_k": 1}),
        *weights.stays_apart(QKV, QKV_BATCH, QKV_HEADS),
        *UNDER_A_MASK,
        Probe(
            "a query that may see nothing gets zeros, and finite gradients",
            {**QKV, "mask": no_keys_for_the_first},
            gradient=True,
            convention="empty_row",
        ),
        Probe(
            "a query that may see nothing gets zeros in float64, too",
            {**QKV_BATCH, "mask": no_keys_for_the_first},
            dtype=torch.float64,
            convention="empty_row",
        ),
    ),
    mistakes=(
        no_scale,
        divided_by_d,
        scaled_by_the_width_of_v,
        the_output_is_scaled,
        softmax_over_queries,
        softmax_over_axis_1,
        all_axes_reversed,
        first_axes_exchanged,
        mask_ignored,
        mask_upside_down,
        mask_on_its_side,
        mask_after_softmax,
        mask_after_softmax_mended,
        masked_with_zero,
        masked_with_zero_and_empty_rows_wiped,
        mask_added_to_the_scores,
        empty_row_gives_nan,
        empty_row_gives_the_average,
        large_negative_number_added,
        keys_and_values_swapped,
        weights_on_their_side,
        weights_returned,
        softmax_that_overflows,
        computed_in_float32,
        detached,
    ),
)
