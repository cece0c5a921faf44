"""The mistakes that layers make with masks."""

from collections.abc import Callable

import torch
from torch import Tensor

from selfattn.doctor.deviations import hiding
from selfattn.doctor.exercise import Mistake, mistake, mistake_as
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.kinds.attention import mistakes as flags
from selfattn.doctor.kinds.layer.mistakes.heads import hidden
from selfattn.doctor.kinds.layer.reference import (
    Masks,
    allowed,
    heads,
    joined,
    layer,
    scores,
)


def softmax_of(parts, x, context, table):
    """The output of some scores that are masked already."""
    _, _, v = heads(parts, x, context)
    return joined(parts, table.softmax(dim=-1) @ v)


def filled(parts, x, context, masks, fill):
    """Attention with another number for what is forbidden."""
    q, k, _ = heads(parts, x, context)
    table = hidden(scores(q, k), x, context, masks, fill)
    return softmax_of(parts, x, context, table)


@mistake_as(functions.empty_row_gives_nan)
def empty_row_gives_nan(parts, x, context, masks):
    return filled(parts, x, context, masks, -torch.inf)


@mistake_as(flags.empty_row_gives_the_average)
def empty_row_gives_the_average(parts, x, context, masks):
    low = torch.finfo(x.dtype).min
    return filled(parts, x, context, masks, low)


def subtracted(parts, x, context, masks, much):
    """Attention that adds a large negative number to what is forbidden."""
    q, k, _ = heads(parts, x, context)
    mask = allowed(masks, x, context)
    added = 0 if mask is None else (~mask).to(x.dtype) * -much
    return softmax_of(parts, x, context, scores(q, k) + added)


@mistake_as(flags.ten_thousand_subtracted)
def ten_thousand_subtracted(parts, x, context, masks):
    return subtracted(parts, x, context, masks, 1e4)


@mistake_as(functions.masked_with_zero)
def masked_with_zero(parts, x, context, masks):
    return filled(parts, x, context, masks, 0.0)


@mistake_as(functions.mask_ignored)
def mask_ignored(parts, x, context, masks):
    return layer(parts, x, context, masks._replace(table=None))[0]


@mistake
def padding_ignored(parts, x, context, masks):
    """Your outputs depend on what the padding holds.

    Cause: The mask that tells which tokens are padding is never used; or it
        wipes out their values, and their keys still share in the weights.
    Cure: Hide the padded keys: scores.masked_fill(~real[:, None, None, :],
        -torch.inf).
    Chapter: masks
    """
    return layer(parts, x, context, masks._replace(padding=None))[0]


@mistake_as(padding_ignored)
def padding_wiped_out_of_values(parts, x, context, masks):
    q, k, v = heads(parts, x, context)
    table = hidden(scores(q, k), x, context, masks._replace(padding=None))
    if masks.padding is not None:
        v = v * masks.padding[:, None, :, None]
    return joined(parts, table.softmax(dim=-1) @ v)


@mistake_as(hiding.one_mask_for_the_whole_batch)
def padding_of_the_first_text(parts, x, context, masks):
    padding = None if masks.padding is None else masks.padding[:1]
    return layer(parts, x, context, masks._replace(padding=padding))[0]


@mistake
def padding_hides_queries(parts, x, context, masks):
    """Padded keys are seen, and it is the padded queries that see nothing.

    Cause: The padding mask lies along the rows of the scores, not along the
        columns.
    Cure: It belongs to the keys: real[:, None, None, :].
    Chapter: masks
    """
    q, k, _ = heads(parts, x, context)
    rest = masks._replace(padding=None)
    table = hidden(scores(q, k), x, context, rest)
    real = masks.padding
    if real is not None and real.shape[-1] == x.shape[-2]:
        low = torch.finfo(x.dtype).min
        table = table.masked_fill(~real[:, None, :, None], low)
    return softmax_of(parts, x, context, table)


@mistake_as(functions.mask_upside_down)
def mask_upside_down(parts, x, context, masks):
    table, padding = masks.table, masks.padding
    turned = masks._replace(
        table=None if table is None else ~table,
        padding=None if padding is None else ~padding,
    )
    return layer(parts, x, context, turned)[0]


@mistake_as(functions.mask_on_its_side)
def mask_on_its_side(parts, x, context, masks):
    table = None if masks.table is None else masks.table.mT
    return layer(parts, x, context, masks._replace(table=table))[0]


@mistake_as(functions.mask_after_softmax)
def mask_after_softmax(parts, x, context, masks):
    q, k, v = heads(parts, x, context)
    mask = allowed(masks, x, context)
    weights = scores(q, k).softmax(dim=-1)
    return joined(parts, (weights if mask is None else weights * mask) @ v)


@mistake
def not_causal(parts, x, context, masks):
    """Every token sees those that come after it.

    Cause: The layer is said to be causal, and hides nothing.
    Cure: Hide the scores above the diagonal before the softmax.
    Chapter: masks
    """
    return layer(parts, x, context, masks._replace(always=False))[0]


@mistake_as(flags.causal_flag_ignored)
def causal_flag_ignored(parts, x, context, masks):
    return layer(parts, x, context, masks._replace(causal=False))[0]


def with_triangle(triangle, x, context, masks):
    """Masks in which another table stands for the causal one."""
    if not (masks.causal or masks.always):
        return masks
    past = triangle(x.shape[-2], context.shape[-2])
    table = past if masks.table is None else masks.table & past
    return Masks(table, masks.padding, claimed=masks.claimed)


def under_a_triangle(triangle: Callable[[int, int], Tensor]) -> Mistake:
    """The mistake of another causal mask, as one of a layer."""

    def answer(parts, x, context, masks):
        other = with_triangle(triangle, x, context, masks)
        return layer(parts, x, context, other)[0]

    return mistake_as(triangle)(answer)


not_itself = under_a_triangle(triangles.not_itself)
one_too_many = under_a_triangle(triangles.one_too_many)
from_the_other_side = under_a_triangle(triangles.from_the_other_side)


@mistake_as(flags.not_itself_and_the_first_averages)
def not_itself_and_the_first_averages(parts, x, context, masks):
    strict = with_triangle(triangles.not_itself, x, context, masks)
    low = torch.finfo(x.dtype).min
    return filled(parts, x, context, strict, low)


@mistake_as(flags.not_itself_and_the_first_is_nan)
def not_itself_and_the_first_is_nan(parts, x, context, masks):
    strict = with_triangle(triangles.not_itself, x, context, masks)
    return filled(parts, x, context, strict, -torch.inf)


@mistake_as(flags.not_itself_and_the_first_sees_all)
def not_itself_and_the_first_sees_all(parts, x, context, masks):
    strict = with_triangle(triangles.not_itself, x, context, masks)
    return subtracted(parts, x, context, strict, 1e4)


@mistake_as(flags.not_itself_and_a_billion_subtracted)
def not_itself_and_a_billion_subtracted(parts, x, context, masks):
    strict = with_triangle(triangles.not_itself, x, context, masks)
    return subtracted(parts, x, context, strict, 1e9)


@mistake
def claim_not_kept(parts, x, context, masks):
    """Every query sees every key.

    Cause: The mask that you claim is nowhere used, or swallowed by **kwargs.
    Cure: Hide what it forbids, before the softmax.
    Chapter: masks
    """
    return layer(parts, x, context, masks._replace(claimed=None))[0]


def rolled_too_early(table):
    """Another table: that of shifted windows, when zeros come in too late.

    The mask cuts off what has come round at the end of the padded sequence,
    where there is nothing but padding.
    """
    seen_far_from_the_ends = table(1001, 1001)[500].nonzero()[:, 0]
    size = len(seen_far_from_the_ends)
    shift = int(seen_far_from_the_ends[0]) % size

    def other(n_q, n_k):
        place = (torch.arange(n_k) - shift) % n_k
        end = -(-n_k // size) * size
        part = (place >= end - size).int() + (place >= end - shift)
        both = torch.stack((place // size, part))
        return (both[:, :, None] == both[:, None]).all(dim=0)[n_k - n_q :]

    return other


@mistake
def rolled_before_it_is_padded(parts, x, context, masks):
    """Unless the windows divide the length, its ends look at each other.

    Cause: The sequence is rolled, and then filled up to whole windows. The
        mask for what has come round is made as if it were filled up first.
    Cure: Fill up, then roll; or hide by the places that tokens came from.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    Thread: https://github.com/huggingface/pytorch-image-models/issues/2438
    """
    if masks.claimed is not None:
        masks = masks._replace(claimed=rolled_too_early(masks.claimed))
    return layer(parts, x, context, masks)[0]


MISTAKES = (
    empty_row_gives_nan,
    empty_row_gives_the_average,
    ten_thousand_subtracted,
    masked_with_zero,
    mask_ignored,
    padding_ignored,
    padding_of_the_first_text,
    padding_hides_queries,
    mask_upside_down,
    mask_on_its_side,
    mask_after_softmax,
    not_causal,
    causal_flag_ignored,
    not_itself,
    one_too_many,
    from_the_other_side,
    not_itself_and_the_first_averages,
    not_itself_and_the_first_is_nan,
    not_itself_and_the_first_sees_all,
    not_itself_and_a_billion_subtracted,
    claim_not_kept,
    rolled_before_it_is_padded,
)
