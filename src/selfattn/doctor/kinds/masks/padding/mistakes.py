"""The mistakes of the kind `padding-mask`."""

import dataclasses

import torch
from torch import Tensor

from selfattn.doctor.exercise import mistake
from selfattn.masks import padding_mask


def table(lengths: Tensor, n: int) -> Tensor:
    """The mask as a table, (batch, n)."""
    return padding_mask(lengths, n)[:, 0, 0]


@mistake
def upside_down(lengths, n):
    """Padding is seen, and text is not.

    Cause: True is where padding is.
    Cure: Turn it round, with ~ ; or say mask="block", if that is meant, as
        key_padding_mask of PyTorch's layers does.
    """
    return ~padding_mask(lengths, n)


@mistake
def one_too_many(lengths, n):
    """The first padded position is seen.

    Cause: Positions from 0 are compared with <= .
    Cure: position < length.
    """
    return padding_mask((lengths + 1).clamp(max=n), n)


@mistake
def one_too_few(lengths, n):
    """The last token of each text is hidden.

    Cause: position < length - 1, or the end of the text counts as padding.
    Cure: position < length.
    """
    return padding_mask((lengths - 1).clamp(min=0), n)


@mistake
def padded_on_the_other_side(lengths, n):
    """The beginning of short texts is hidden, and their padding seen.

    Cause: The mask is for texts that stand at the right end of their rows.
    Cure: Text first, padding last: position < length.
    """
    return padding_mask(lengths, n).flip(-1)


@mistake
def first_text_for_all(lengths, n):
    """All texts are as long as the first.

    Cause: One row is made, and it broadcasts over the batch.
    Cure: lengths[:, None], so that each text has its own row.
    """
    return padding_mask(lengths[:1].expand_as(lengths), n)


@mistake
def nothing_hidden(lengths, n):
    """All padding is seen.

    Cause: The mask is all True: it was made from the padded width.
    Cure: From the lengths before padding.
    """
    return padding_mask(torch.full_like(lengths, n), n)


@mistake
def as_wide_as_the_longest(lengths, n):
    """It does not fit the scores if the batch is padded farther.

    Cause: Its width is lengths.max().
    Cure: Its width is that of the batch.
    """
    longest = int(lengths.max())
    return padding_mask(lengths, max(longest, 1))


@mistake
def longest_for_all(lengths, n):
    """All texts are as long as the longest.

    Cause: lengths.max() instead of each text's own length.
    Cure: lengths[:, None].
    """
    return padding_mask(lengths.max().expand_as(lengths), n)


@mistake
def queries_hidden_too(lengths, n):
    """Padded queries have empty rows: NaN, in many a softmax.

    Cause: The mask is laid over queries and keys.
    Cure: Hide keys alone; what padded queries say is thrown away anyway.
    Thread: https://github.com/pytorch/pytorch/issues/41508
    """
    keys = padding_mask(lengths, n)
    return keys & keys.mT


@mistake
def queries_instead_of_keys(lengths, n):
    """Padded keys are seen by all, and padded queries see nothing.

    Cause: The axes are (batch, 1, n, 1).
    Cure: (batch, 1, 1, n): keys are the last axis.
    """
    return padding_mask(lengths, n).mT


@mistake
def without_axes_for_heads_and_queries(lengths, n):
    """With scores of four axes it fails, or hides what it should not.

    Cause: (batch, n) broadcasts as (queries, keys).
    Cure: [:, None, None, :].
    """
    return table(lengths, n)


@mistake
def without_an_axis_for_heads(lengths, n):
    """As many texts as heads, and it hides the wrong ones without a word.

    Cause: (batch, 1, n) broadcasts as (heads, queries, keys).
    Cure: [:, None, None, :].
    """
    return table(lengths, n)[:, None]


@mistake
def texts_last(lengths, n):
    """A column is a text.

    Cause: position[:, None] < lengths, as for tokens in (n, batch).
    Cure: lengths[:, None], position along the last axis.
    """
    return table(lengths, n).mT[:, None, None]


@mistake
def numbers_not_booleans(lengths, n):
    """The pattern is right, but it is made of ones and zeros.

    Cause: It is a count, or was turned into floats.
    Cure: dtype=torch.bool. Of numbers nobody can tell what they mean.
    """
    return padding_mask(lengths, n).float()


@mistake
def numbers_to_add(lengths, n):
    """The pattern is right, but it is one to add to scores.

    Cause: It holds 0 and minus infinity.
    Cure: Booleans are asked for; or say mask="add".
    """
    keep = padding_mask(lengths, n)
    return torch.zeros(keep.shape).masked_fill(~keep, -torch.inf)


MISTAKES = tuple(
    # They live here, and not among the exercises of the chapter on masks.
    dataclasses.replace(mistake, chapter="masks")
    for mistake in (
        upside_down,
        one_too_many,
        one_too_few,
        padded_on_the_other_side,
        first_text_for_all,
        nothing_hidden,
        as_wide_as_the_longest,
        longest_for_all,
        queries_hidden_too,
        queries_instead_of_keys,
        without_axes_for_heads_and_queries,
        without_an_axis_for_heads,
        texts_last,
        numbers_not_booleans,
        numbers_to_add,
    )
)
