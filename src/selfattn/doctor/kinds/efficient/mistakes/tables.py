"""Attention under a mask that need not be made, and how it goes wrong."""

import math

import torch

from selfattn.doctor.exercise import mistake, mistake_as
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.dot_product import weights as tables
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.kinds.attention import mistakes as flags
from selfattn.doctor.kinds.efficient.experiments import measured
from selfattn.doctor.kinds.layer.mistakes import masks as layers
from selfattn.dot_product import attention, masked_softmax
from selfattn.masks import causal_mask


def whole_table(q, k, table, causal):
    """The claimed mask, (n_q, n_k), with the causal one if asked for."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    mask = table(n_q, n_k)
    return mask & causal_mask(n_q, n_k) if causal else mask


def under(q, k, v, causal, table):
    """The reference."""
    return attention(q, k, v, mask=whole_table(q, k, table, causal))


def band(n_q, n_k, below, above):
    """The keys from so many before the query to so many behind it."""
    i = torch.arange(n_q)[:, None] + n_k - n_q
    j = torch.arange(n_k)
    return (j - i >= -below) & (j - i <= above)


def reach(table):
    """How far the claimed mask reaches to both sides, far from the ends."""
    seen = table(1001, 1001)[500].nonzero()[:, 0] - 500
    return -int(seen.min()), int(seen.max())


def within(q, k, v, causal, mask):
    """Attention under another mask, causal if asked for."""
    if causal:
        mask = mask & causal_mask(q.shape[-2], k.shape[-2])
    return attention(q, k, v, mask=mask)


@mistake
def one_key_too_many(q, k, v, causal, table):
    """Each query sees one key more to each side than you say.

    Cause: The window is compared with <=, or its own position not counted.
    Cure: A window of w sees w - 1 keys back and itself: abs(i - j) < w.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """
    below, above = reach(table)
    mask = band(q.shape[-2], k.shape[-2], below + 1, above + 1)
    return within(q, k, v, causal, mask)


@mistake
def one_key_too_many_behind(q, k, v, causal, table):
    """Each query sees one key more behind it than ahead.

    Cause: The window is cut to an even length, half of it behind the query;
        the query itself lies in the other half.
    Cure: A window of w sees w - 1 keys to each side: abs(i - j) < w.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """
    below, above = reach(table)
    mask = band(q.shape[-2], k.shape[-2], below + 1, above)
    return within(q, k, v, causal, mask)


@mistake
def one_key_too_few(q, k, v, causal, table):
    """Each query sees one key less to each side than you say.

    Cause: The query's own position is counted twice, or < stands for <=.
    Cure: A window of w sees w - 1 keys back and itself: abs(i - j) < w.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """
    below, above = reach(table)
    mask = band(q.shape[-2], k.shape[-2], below - 1, above - 1)
    return within(q, k, v, causal, mask)


@mistake
def nothing_ahead(q, k, v, causal, table):
    """Without the causal flag, too, queries see no later keys.

    Cause: The window reaches back only, as if it were always causal.
    Cure: Without the flag it reaches to both sides.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """
    return under(q, k, v, True, table)


def blocks(n_q, n_k, size):
    """The number of the block in which each query and each key lies."""
    i = torch.arange(n_q)[:, None] + n_k - n_q
    return i // size, torch.arange(n_k) // size


@mistake
def blocks_that_do_not_overlap(q, k, v, causal, table):
    """A query at the start of a block sees nothing of the block before.

    Cause: The sequence is cut into blocks, and each attends to itself.
    Cure: Let each block look at its neighbours, and hide what is too far.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """
    of_i, of_j = blocks(q.shape[-2], k.shape[-2], 1 + reach(table)[0])
    return within(q, k, v, causal, of_i == of_j)


@mistake
def whole_blocks_seen(q, k, v, causal, table):
    """How far a query sees depends on where in its block it stands.

    Cause: Each block looks at itself and its neighbours, and what is too
        far is not hidden.
    Cure: Mask within the blocks: abs(i - j) < window.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """
    of_i, of_j = blocks(q.shape[-2], k.shape[-2], 1 + reach(table)[0])
    return within(q, k, v, causal, (of_i - of_j).abs() <= 1)


@mistake
def the_ends_meet(q, k, v, causal, table):
    """The first queries see the last keys.

    Cause: The windows are made with roll, which brings what leaves at one
        end in at the other.
    Cure: Hide what has come round.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """
    n_q, n_k = q.shape[-2], k.shape[-2]
    below, above = reach(table)
    i = torch.arange(n_q)[:, None] + n_k - n_q
    back = (i - torch.arange(n_k)) % n_k
    ring = (back <= below) | (n_k - back <= (0 if causal else above))
    return attention(q, k, v, mask=ring)


@mistake_as(layers.rolled_before_it_is_padded)
def rolled_before_it_is_padded(q, k, v, causal, table):
    mask = layers.rolled_too_early(table)(q.shape[-2], k.shape[-2])
    return within(q, k, v, causal, mask)


@mistake
def padding_of_the_last_block_is_seen(q, k, v, causal, table):
    """The last queries are too faint: they also see keys that do not exist.

    Cause: The last block is filled up with zeros, and these keys are not
        hidden: each gets the weight of a score of 0.
    Cure: Mask them, or cut the last block short.
    Chapter: masks#zero-is-a-vote
    """
    n_q, n_k = q.shape[-2], k.shape[-2]
    more = -n_k % 64
    longer_k, longer_v = (
        torch.nn.functional.pad(x, (0, 0, 0, more)) for x in (k, v)
    )
    mask = whole_table(q, k, table, causal)
    whole = table(n_k + more, n_k + more)
    extra = whole[n_k - n_q : n_k, n_k:] & (not causal)
    mask = torch.cat((mask, extra), dim=-1)
    return attention(q, longer_k, longer_v, mask=mask)


@mistake
def hidden_keys_share_the_weight(q, k, v, causal, table):
    """Your rows sum to less than one: hidden keys are in the denominator.

    Cause: The values of hidden keys are set to zero, not their scores.
    Cure: Hide the scores before the softmax.
    Chapter: masks#masking-too-late
    """
    mask = whole_table(q, k, table, causal)
    return tables.scaled(q, k).softmax(dim=-1) * mask @ v


@mistake_as(tables.no_scale)
def no_scale(q, k, v, causal, table):
    mask = whole_table(q, k, table, causal)
    return masked_softmax(q @ k.mT, mask) @ v


@mistake_as(tables.divided_by_d)
def divided_by_d(q, k, v, causal, table):
    return under(q / math.sqrt(q.shape[-1]), k, v, causal, table)


@mistake_as(layers.claim_not_kept)
def claim_not_kept(q, k, v, causal, table):
    return attention(q, k, v, causal=causal)


@mistake_as(flags.causal_flag_ignored)
def causal_flag_ignored(q, k, v, causal, table):
    return under(q, k, v, False, table)


@mistake_as(triangles.first_on_first)
def first_on_first(q, k, v, causal, table):
    n_q, n_k = q.shape[-2], k.shape[-2]
    mask = table(max(n_q, n_k), max(n_q, n_k))[:n_q, :n_k]
    past = torch.ones(n_q, n_k, dtype=torch.bool).tril()
    return attention(q, k, v, mask=mask & past if causal else mask)


@mistake_as(triangles.not_itself)
def not_itself(q, k, v, causal, table):
    mask = table(q.shape[-2], k.shape[-2])
    if causal:
        mask = mask & triangles.not_itself(q.shape[-2], k.shape[-2])
    return attention(q, k, v, mask=mask)


@mistake_as(flags.not_itself_and_the_first_averages)
def not_itself_and_the_first_averages(q, k, v, causal, table):
    mask = table(q.shape[-2], k.shape[-2])
    return flags.not_itself_and_the_first_averages(q, k, v, mask, causal)


@mistake_as(functions.computed_in_float32)
def computed_in_float32(q, k, v, causal, table):
    output = under(q.float(), k.float(), v.float(), causal, table)
    return output.to(q.dtype)


@mistake_as(functions.detached)
def detached(q, k, v, causal, table):
    return under(q, k, v, causal, table).detach()


@mistake
@measured
def the_whole_table_is_made(q, k, v, causal, table):
    """It is right, and saves nothing: the whole table of scores is made.

    Cause: All scores are computed, and most are hidden afterwards.
    Cure: Compute those alone that count, block by block.
    Chapter: cost
    """
    return under(q, k, v, causal, table)


MISTAKES = (
    one_key_too_many,
    one_key_too_many_behind,
    one_key_too_few,
    nothing_ahead,
    blocks_that_do_not_overlap,
    whole_blocks_seen,
    the_ends_meet,
    rolled_before_it_is_padded,
    padding_of_the_last_block_is_seen,
    hidden_keys_share_the_weight,
    no_scale,
    divided_by_d,
    claim_not_kept,
    causal_flag_ignored,
    first_on_first,
    not_itself,
    not_itself_and_the_first_averages,
    computed_in_float32,
    detached,
    the_whole_table_is_made,
)
