"""The mistakes of the kind `attention`, besides those of the exercise."""

import functools
import math
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn.doctor.deviations import hiding, scores
from selfattn.doctor.exercise import Mistake, mistake, mistake_as
from selfattn.doctor.exercises.dot_product import attention as exercise
from selfattn.doctor.exercises.dot_product import weights
from selfattn.doctor.exercises.dot_product.attention import ATTENTION, hidden
from selfattn.doctor.exercises.dot_product.weights import scaled
from selfattn.doctor.exercises.masks import causal as masks
from selfattn.dot_product import attention, masked_softmax
from selfattn.masks import causal_mask


def under_a_flag(answer):
    """A wrong answer of the exercise, with a causal flag."""

    @functools.wraps(answer)
    def attend(q, k, v, mask=None, causal=False):
        if causal:
            past = causal_mask(q.shape[-2], k.shape[-2])
            mask = past if mask is None else mask & past
        return answer(q, k, v, mask=mask)

    return attend


# Those of the exercise; one of them is written otherwise below.
OF_THE_EXERCISE = {
    known: replace(known, answer=under_a_flag(known.answer))
    for known in ATTENTION.mistakes
    if known is not exercise.empty_row_gives_the_average
}
empty_row_gives_nan = OF_THE_EXERCISE[exercise.empty_row_gives_nan]


@mistake
@under_a_flag
def empty_row_gives_the_average(q, k, v, mask=None):
    """A query that may see nothing gets the average of all values.

    Cause: Forbidden scores are a large negative number such as finfo.min;
        where all are forbidden, all are equal.
    Cure: Here such a query gets zeros: wipe out the weights of empty rows.
    Chapter: masks#large-and-negative
    """
    low = torch.finfo(q.dtype).min
    return hidden(scaled(q, k), mask, low).softmax(dim=-1) @ v


def subtracted(q, k, v, mask, much):
    """Attention that adds a large negative number to forbidden scores."""
    added = 0 if mask is None else (~mask).to(q.dtype) * -much
    return (scaled(q, k) + added).softmax(dim=-1) @ v


@mistake
@under_a_flag
def ten_thousand_subtracted(q, k, v, mask=None):
    """A query that may see nothing sees everything, a little rounded.

    Cause: A number such as -10000 is added to forbidden scores. Where all
        are forbidden it cancels out; a larger score would win over it.
    Cure: -torch.inf, and zeros for the rows where all is forbidden.
    Chapter: masks#large-and-negative
    """
    return subtracted(q, k, v, mask, 1e4)


@mistake_as(hiding.a_billion_in_float16)
@under_a_flag
def a_billion_in_float16(q, k, v, mask=None):
    return hidden(scaled(q, k), mask, -1e9).softmax(dim=-1) @ v


@mistake
@under_a_flag
def output_in_float32(q, k, v, mask=None):
    """Your output is float32, whatever goes in.

    Cause: The inputs are made float32, and nothing turns the output back.
    Cure: output.to(q.dtype).
    Chapter: dot_product
    """
    return attention(q.float(), k.float(), v.float(), mask=mask)


@mistake_as(hiding.one_mask_for_the_whole_batch)
@under_a_flag
def one_mask_for_the_whole_batch(q, k, v, mask=None):
    if mask is not None and mask.ndim > 2:
        mask = mask[:1]
    return attention(q, k, v, mask=mask)


@mistake
@under_a_flag
def first_row_of_the_mask_for_all(q, k, v, mask=None):
    """All queries see what the first may see.

    Cause: The mask is cut down to one row, as if it were one for padding.
    Cure: Keep its axes: a row for each query.
    Chapter: masks
    """
    mask = None if mask is None else mask[..., :1, :]
    return attention(q, k, v, mask=mask)


@mistake_as(scores.keys_of_the_first_sequence)
@under_a_flag
def keys_of_the_first_sequence(q, k, v, mask=None):
    first = k if k.ndim < 3 else k[:1].expand_as(k)
    return attention(q, first, v, mask=mask)


@mistake
@under_a_flag
def view_of_what_is_not_contiguous(q, k, v, mask=None):
    """It fails on inputs that were transposed or expanded.

    Cause: .view needs numbers that lie in memory in their order.
    Cure: .reshape, or .contiguous() before it.
    Chapter: multihead
    """
    q, k, v = (x.view(-1).view(x.shape) for x in (q, k, v))
    return attention(q, k, v, mask=mask)


@mistake
@under_a_flag
def values_wiped_out_in_place(q, k, v, mask=None):
    """Your output is right, but the caller's values are not what they were.

    Cause: masked_fill_ writes into the input; its name ends in _.
    Cure: v.masked_fill(...), which makes a new tensor.
    Chapter: masks
    """
    output = attention(q, k, v, mask=mask)
    v.data.zero_()
    return output


@mistake
@under_a_flag
def dropout_that_never_ends(q, k, v, mask=None):
    """Two calls with the same input give different outputs.

    Cause: F.dropout drops unless it is told not to, in evaluation, too.
    Cure: F.dropout(weights, p, training=self.training).
    Chapter: dot_product
    """
    rows = masked_softmax(scaled(q, k), mask)
    return F.dropout(rows, 0.1) @ v


@mistake_as(weights.no_softmax)
@under_a_flag
def no_softmax(q, k, v, mask=None):
    return hidden(scaled(q, k), mask, 0.0) @ v


@mistake_as(weights.sigmoid_instead_of_softmax)
@under_a_flag
def sigmoid_instead_of_softmax(q, k, v, mask=None):
    return hidden(scaled(q, k), mask).sigmoid() @ v


@mistake_as(weights.multiplied_by_the_root)
@under_a_flag
def multiplied_by_the_root(q, k, v, mask=None):
    return masked_softmax(q @ k.mT * math.sqrt(q.shape[-1]), mask) @ v


@mistake_as(weights.scaled_by_the_number_of_keys)
@under_a_flag
def scaled_by_the_number_of_keys(q, k, v, mask=None):
    return masked_softmax(q @ k.mT / math.sqrt(k.shape[-2]), mask) @ v


@mistake_as(weights.cosine_instead_of_product)
@under_a_flag
def cosine_instead_of_product(q, k, v, mask=None):
    cosines = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
    return masked_softmax(cosines, mask) @ v


@mistake_as(weights.query_scaled_in_place)
@under_a_flag
def query_scaled_in_place(q, k, v, mask=None):
    q.data.div_(math.sqrt(q.shape[-1]))
    return masked_softmax(q @ k.mT, mask) @ v


@mistake_as(hiding.causal_flag_ignored)
def causal_flag_ignored(q, k, v, mask=None, causal=False):
    return attention(q, k, v, mask=mask)


def under_another_flag(
    table: Callable[[int, int], Tensor],
    masked: Callable[..., Tensor] = attention,
):
    """Attention whose causal flag stands for another table."""

    def attend(q, k, v, mask=None, causal=False):
        if causal:
            past = table(q.shape[-2], k.shape[-2])
            mask = past if mask is None else mask & past
        return masked(q, k, v, mask=mask)

    return attend


def under_a_triangle(triangle: Callable[[int, int], Tensor]) -> Mistake:
    """The mistake of another causal mask, as one of attention."""
    return mistake_as(triangle)(under_another_flag(triangle))


first_on_first = under_a_triangle(masks.first_on_first)
upside_down = under_a_triangle(masks.upside_down)
not_itself = under_a_triangle(masks.not_itself)
one_too_many = under_a_triangle(masks.one_too_many)
from_the_other_side = under_a_triangle(masks.from_the_other_side)


# Without the diagonal the first token sees nothing, and what it gets then
# depends on how scores are hidden.
without_the_diagonal = functools.partial(under_another_flag, masks.not_itself)


@mistake
def not_itself_and_the_first_averages(q, k, v, mask=None, causal=False):
    """A token does not see itself; the first gets the average of all.

    Cause: The causal mask leaves out the diagonal, as tril(diagonal=-1) does.
        That leaves the first row empty. Forbidden scores are a large negative
        number such as -1e9; where all are forbidden, all are equal, and the
        first token sees the future.
    Cure: j <= i: the diagonal belongs to the past.
    Chapter: masks#a-row-with-nothing-in-it
    """
    attend = without_the_diagonal(empty_row_gives_the_average)
    return attend(q, k, v, mask, causal)


@mistake
def not_itself_and_the_first_is_nan(q, k, v, mask=None, causal=False):
    """A token does not see itself, and the first output is NaN.

    Cause: The causal mask leaves out the diagonal, as tril(diagonal=-1) does.
        That leaves the first row empty: softmax of a row of -inf is 0/0.
    Cure: j <= i: the diagonal belongs to the past.
    Chapter: masks#a-row-with-nothing-in-it
    """
    return without_the_diagonal(empty_row_gives_nan)(q, k, v, mask, causal)


@mistake
def not_itself_and_the_first_sees_all(q, k, v, mask=None, causal=False):
    """A token does not see itself; the first sees all, a little rounded.

    Cause: The causal mask leaves out the diagonal, as tril(diagonal=-1) does.
        That leaves the first row empty. A number such as -10000 is added to
        forbidden scores; where all are forbidden it cancels out.
    Cure: j <= i: the diagonal belongs to the past.
    Chapter: masks#a-row-with-nothing-in-it
    """
    attend = without_the_diagonal(ten_thousand_subtracted)
    return attend(q, k, v, mask, causal)


@mistake
def not_itself_and_a_billion_subtracted(q, k, v, mask=None, causal=False):
    """A token does not see itself; what the first sees depends on the type.

    Cause: The causal mask leaves out the diagonal, as tril(diagonal=-1) does.
        That leaves the first row empty. -1e9 is added to forbidden scores:
        in float64 it cancels out; in float32 all that was there is rounded
        away, and the first token gets the average.
    Cure: j <= i: the diagonal belongs to the past.
    Chapter: masks#a-row-with-nothing-in-it
    """
    attend = without_the_diagonal(functools.partial(subtracted, much=1e9))
    return attend(q, k, v, mask, causal)


MISTAKES = (
    # Where a convention allows its average, a number that is added fails
    # alike; so this one comes before the exercise's.
    a_billion_in_float16,
    *OF_THE_EXERCISE.values(),
    empty_row_gives_the_average,
    ten_thousand_subtracted,
    output_in_float32,
    one_mask_for_the_whole_batch,
    first_row_of_the_mask_for_all,
    keys_of_the_first_sequence,
    view_of_what_is_not_contiguous,
    values_wiped_out_in_place,
    dropout_that_never_ends,
    no_softmax,
    sigmoid_instead_of_softmax,
    multiplied_by_the_root,
    scaled_by_the_number_of_keys,
    cosine_instead_of_product,
    query_scaled_in_place,
    causal_flag_ignored,
    first_on_first,
    upside_down,
    not_itself,
    one_too_many,
    from_the_other_side,
    not_itself_and_the_first_averages,
    not_itself_and_the_first_is_nan,
    not_itself_and_the_first_sees_all,
    not_itself_and_a_billion_subtracted,
)
CONVENTIONS = {
    "empty_row": {
        "zeros": None,
        "nan": empty_row_gives_nan,
        "average": empty_row_gives_the_average,
        "everything": ten_thousand_subtracted,
    },
    "alignment": {"last": None, "first": first_on_first},
}
