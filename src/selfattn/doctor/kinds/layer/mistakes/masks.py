"""The mistakes that layers make with masks, added to `BANK`."""

import torch

from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.kinds.attention import mistakes as flags
from selfattn.doctor.kinds.efficient.mistakes.tables import (
    claim_not_kept,
    rolled_before_it_is_padded,
    rolled_too_early,
)
from selfattn.doctor.kinds.layer.mistakes.heads import BANK, hidden
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


@BANK.mistake_as(functions.empty_row_gives_nan)
def _(parts, x, context, masks):
    return filled(parts, x, context, masks, -torch.inf)


@BANK.mistake_as(flags.empty_row_gives_the_average)
def _(parts, x, context, masks):
    low = torch.finfo(x.dtype).min
    return filled(parts, x, context, masks, low)


def subtracted(parts, x, context, masks, much):
    """Attention that adds a large negative number to what is forbidden."""
    q, k, _ = heads(parts, x, context)
    mask = allowed(masks, x, context)
    added = 0 if mask is None else (~mask).to(x.dtype) * -much
    return softmax_of(parts, x, context, scores(q, k) + added)


@BANK.mistake_as(flags.ten_thousand_subtracted)
def _(parts, x, context, masks):
    return subtracted(parts, x, context, masks, 1e4)


@BANK.mistake_as(functions.masked_with_zero)
def _(parts, x, context, masks):
    return filled(parts, x, context, masks, 0.0)


@BANK.mistake_as(functions.mask_ignored)
def _(parts, x, context, masks):
    return layer(parts, x, context, masks._replace(table=None))[0]


@BANK.mistake
def padding_ignored(parts, x, context, masks):
    """Your outputs depend on what the padding holds.

    Cause: The mask that tells which tokens are padding is never used; or it
        wipes out their values, and their keys still share in the weights.
    Cure: Hide the padded keys: scores.masked_fill(~real[:, None, None, :],
        -torch.inf).
    Chapter: masks
    """
    return layer(parts, x, context, masks._replace(padding=None))[0]


@BANK.mistake
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


@BANK.mistake_as(functions.mask_upside_down)
def _(parts, x, context, masks):
    table, padding = masks.table, masks.padding
    turned = masks._replace(
        table=None if table is None else ~table,
        padding=None if padding is None else ~padding,
    )
    return layer(parts, x, context, turned)[0]


@BANK.mistake_as(functions.mask_on_its_side)
def _(parts, x, context, masks):
    table = None if masks.table is None else masks.table.mT
    return layer(parts, x, context, masks._replace(table=table))[0]


@BANK.mistake_as(functions.mask_after_softmax)
def _(parts, x, context, masks):
    q, k, v = heads(parts, x, context)
    mask = allowed(masks, x, context)
    weights = scores(q, k).softmax(dim=-1)
    return joined(parts, (weights if mask is None else weights * mask) @ v)


@BANK.mistake
def not_causal(parts, x, context, masks):
    """Every token sees those that come after it.

    Cause: The layer is said to be causal, and hides nothing.
    Cure: Hide the scores above the diagonal before the softmax.
    Chapter: masks
    """
    return layer(parts, x, context, masks._replace(always=False))[0]


@BANK.mistake_as(flags.causal_flag_ignored)
def _(parts, x, context, masks):
    return layer(parts, x, context, masks._replace(causal=False))[0]


def with_triangle(triangle, x, context, masks):
    """Masks in which another table stands for the causal one."""
    if not (masks.causal or masks.always):
        return masks
    past = triangle(x.shape[-2], context.shape[-2])
    table = past if masks.table is None else masks.table & past
    return Masks(table, masks.padding, claimed=masks.claimed)


def under_another_triangle(words):
    """A layer whose causal mask is another table."""

    @BANK.mistake_as(words)
    def _(parts, x, context, masks):
        other = with_triangle(words, x, context, masks)
        return layer(parts, x, context, other)[0]


for triangle in (
    triangles.not_itself,
    triangles.one_too_many,
    triangles.from_the_other_side,
):
    under_another_triangle(triangle)


@BANK.mistake_as(flags.not_itself_and_the_first_averages)
def _(parts, x, context, masks):
    strict = with_triangle(triangles.not_itself, x, context, masks)
    low = torch.finfo(x.dtype).min
    return filled(parts, x, context, strict, low)


@BANK.mistake_as(flags.not_itself_and_the_first_is_nan)
def _(parts, x, context, masks):
    strict = with_triangle(triangles.not_itself, x, context, masks)
    return filled(parts, x, context, strict, -torch.inf)


@BANK.mistake_as(flags.not_itself_and_the_first_sees_all)
def _(parts, x, context, masks):
    strict = with_triangle(triangles.not_itself, x, context, masks)
    return subtracted(parts, x, context, strict, 1e4)


@BANK.mistake_as(flags.not_itself_and_a_billion_subtracted)
def _(parts, x, context, masks):
    strict = with_triangle(triangles.not_itself, x, context, masks)
    return subtracted(parts, x, context, strict, 1e9)


CLAIMS = {"claim not kept", "rolled before it is padded"}  # need a claim


@BANK.mistake_as(claim_not_kept)
def _(parts, x, context, masks):
    return layer(parts, x, context, masks._replace(claimed=None))[0]


@BANK.mistake_as(rolled_before_it_is_padded)
def _(parts, x, context, masks):
    if masks.claimed is not None:
        masks = masks._replace(claimed=rolled_too_early(masks.claimed))
    return layer(parts, x, context, masks)[0]
