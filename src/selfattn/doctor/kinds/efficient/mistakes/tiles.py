"""Exact attention, tile by tile, and how it goes wrong."""

import contextlib
import math

import torch

from selfattn.doctor.exercise import mistake, mistake_as
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.dot_product import weights as tables
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.kinds.attention import mistakes as flags
from selfattn.doctor.kinds.efficient.experiments import measured
from selfattn.doctor.kinds.efficient.mistakes import tables as masked
from selfattn.dot_product import attention
from selfattn.masks import causal_mask

TILE = [32]  # the size of a tile; others have others: `of_size`


@contextlib.contextmanager
def of_size(tile):
    """Tiles of another size, for a while."""
    was, TILE[0] = TILE[0], tile
    try:
        yield
    finally:
        TILE[0] = was


def exact(q, k, v, causal, claim):
    """The reference."""
    return attention(q, k, v, causal=causal)


def tiles_of(q, k, v, causal):
    """The masked scores and the values of each tile of keys."""
    scores = tables.scaled(q, k)
    if causal:
        past = causal_mask(q.shape[-2], k.shape[-2])
        scores = scores.masked_fill(~past, -math.inf)
    return zip(scores.split(TILE[0], -1), v.split(TILE[0], -2), strict=True)


def summed(pieces, shrink=True, top_of_first=False):
    """The online softmax of some tiles, with or without its care."""
    pieces = list(pieces)
    top = pieces[0][0].amax(dim=-1, keepdim=True).clamp(min=-1e4)
    total = output = torch.zeros(())
    for scores, values in pieces:
        highest = scores.amax(dim=-1, keepdim=True).clamp(min=-1e4)
        new = top if top_of_first else torch.maximum(top, highest)
        powers = (scores - new).exp()
        factor = (top - new).exp() if shrink else 1.0
        total = total * factor + powers.sum(dim=-1, keepdim=True)
        output = output * factor + powers @ values
        top = new
    return output, total


def shared(output, total):
    """The output divided; a row that saw nothing gets zeros."""
    return output / (total + (total == 0))


@mistake
def nothing_is_rescaled(q, k, v, causal, claim):
    """Your first keys count too much, as soon as a later tile is larger.

    Cause: When the running maximum grows, what was summed before it is not
        made smaller by exp(old - new).
    Cure: Multiply sum and output by exp(old maximum - new maximum).
    Chapter: bench#in-tiles
    """
    return shared(*summed(tiles_of(q, k, v, causal), shrink=False))


@mistake
def output_is_not_rescaled(q, k, v, causal, claim):
    """Your output grows too long, as soon as a later tile is larger.

    Cause: With a new maximum the running sum shrinks, and the output is
        forgotten.
    Cure: Multiply both by exp(old maximum - new maximum).
    Chapter: bench#in-tiles
    """
    output, _ = summed(tiles_of(q, k, v, causal), shrink=False)
    _, total = summed(tiles_of(q, k, v, causal))
    return shared(output, total)


@mistake
def maximum_of_the_first_tile(q, k, v, causal, claim):
    """Scores of later tiles that are much larger overflow.

    Cause: The maximum is that of the first tile, for good.
    Cure: Let it run along: torch.maximum(old, this tile's).
    Chapter: dot_product#the-overflow
    """
    return shared(*summed(tiles_of(q, k, v, causal), top_of_first=True))


@mistake
def each_tile_has_its_own_softmax(q, k, v, causal, claim):
    """All tiles count alike, whatever their scores.

    Cause: The softmax is taken within each tile, and the outputs averaged.
    Cure: Share out over all keys: keep a running maximum and a running sum.
    Chapter: dot_product#a-weight-compares-within-a-row
    """
    outputs = [
        scores.softmax(dim=-1).nan_to_num() @ values
        for scores, values in tiles_of(q, k, v, causal)
    ]
    return sum(outputs) / len(outputs)


@mistake
def never_divided(q, k, v, causal, claim):
    """Your output is too long: its weights sum to more than one.

    Cause: The running sum is kept, and never used.
    Cure: Divide the output by it, once, at the end.
    Chapter: dot_product#each-row-is-an-average
    """
    return summed(tiles_of(q, k, v, causal))[0]


@mistake
def last_tile_left_out(q, k, v, causal, claim):
    """Your last keys are not seen, unless their number fits the tiles.

    Cause: The number of tiles is n // size, which leaves out the rest.
    Cure: Round up, and let the last tile be shorter.
    Chapter: bench#in-tiles
    """
    whole = k.shape[-2] // TILE[0] * TILE[0] or k.shape[-2]
    pieces = list(tiles_of(q, k, v, causal))
    return shared(*summed(pieces[: -(-whole // TILE[0])]))


@mistake
def zeros_fill_the_last_tile(q, k, v, causal, claim):
    """Your rows sum to less than one, unless the keys fit the tiles.

    Cause: The last tile is filled up with zeros, whose scores are 0 and
        count.
    Cure: Hide them, or let the last tile be shorter.
    Chapter: masks#zero-is-a-vote
    """
    pieces = list(tiles_of(q, k, v, causal))
    scores, values = pieces[-1]
    more = TILE[0] - scores.shape[-1]
    pieces[-1] = (
        torch.nn.functional.pad(scores, (0, more)),
        torch.nn.functional.pad(values, (0, 0, 0, more)),
    )
    return shared(*summed(pieces))


@mistake
def diagonal_tiles_are_not_masked(q, k, v, causal, claim):
    """Causal, a query sees the later keys of its own tile.

    Cause: Tiles wholly in the future are left out, and those that lie on
        the diagonal are taken whole.
    Cure: Mask within the tiles on the diagonal.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """
    if not causal:
        return exact(q, k, v, causal, claim)
    i = torch.arange(q.shape[-2])[:, None] + k.shape[-2] - q.shape[-2]
    mask = torch.arange(k.shape[-2]) // TILE[0] <= i // TILE[0]
    return attention(q, k, v, mask=mask)


@mistake
def diagonal_tiles_are_left_out(q, k, v, causal, claim):
    """Causal, a query sees nothing of its own tile, not even itself.

    Cause: A tile is left out as soon as a part of it is in the future.
    Cure: Leave out only what is so as a whole, and mask within the others.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """
    if not causal:
        return exact(q, k, v, causal, claim)
    i = torch.arange(q.shape[-2])[:, None] + k.shape[-2] - q.shape[-2]
    mask = torch.arange(k.shape[-2]) // TILE[0] < i // TILE[0]
    return attention(q, k, v, mask=mask)


@mistake_as(tables.no_scale)
def no_scale(q, k, v, causal, claim):
    return attention(q, k, v, causal=causal, scale=1.0)


@mistake_as(tables.divided_by_d)
def divided_by_d(q, k, v, causal, claim):
    return attention(q, k, v, causal=causal, scale=1 / q.shape[-1])


@mistake_as(tables.softmax_that_overflows)
def softmax_that_overflows(q, k, v, causal, claim):
    powers = torch.cat([s.exp() for s, _ in tiles_of(q, k, v, causal)], dim=-1)
    return shared(powers @ v, powers.sum(dim=-1, keepdim=True))


@mistake_as(flags.causal_flag_ignored)
def causal_flag_ignored(q, k, v, causal, claim):
    return attention(q, k, v)


@mistake_as(triangles.first_on_first)
def first_on_first(q, k, v, causal, claim):
    past = triangles.first_on_first(q.shape[-2], k.shape[-2])
    return attention(q, k, v, mask=past if causal else None)


@mistake_as(triangles.not_itself)
def not_itself(q, k, v, causal, claim):
    past = triangles.not_itself(q.shape[-2], k.shape[-2])
    return attention(q, k, v, mask=past if causal else None)


@mistake_as(flags.not_itself_and_the_first_averages)
def not_itself_and_the_first_averages(q, k, v, causal, claim):
    return flags.not_itself_and_the_first_averages(q, k, v, causal=causal)


@mistake_as(functions.computed_in_float32)
def computed_in_float32(q, k, v, causal, claim):
    output = exact(q.float(), k.float(), v.float(), causal, claim)
    return output.to(q.dtype)


@mistake_as(functions.detached)
def detached(q, k, v, causal, claim):
    return exact(q, k, v, causal, claim).detach()


@mistake_as(masked.the_whole_table_is_made)
@measured
def the_whole_table_is_made(q, k, v, causal, claim):
    """All scores are made at once."""
    return exact(q, k, v, causal, claim)


OF_TILES = (  # what depends on their size
    nothing_is_rescaled,
    output_is_not_rescaled,
    maximum_of_the_first_tile,
    each_tile_has_its_own_softmax,
    never_divided,
    last_tile_left_out,
    zeros_fill_the_last_tile,
    diagonal_tiles_are_not_masked,
    diagonal_tiles_are_left_out,
)
MISTAKES = (
    *OF_TILES,
    no_scale,
    divided_by_d,
    softmax_that_overflows,
    causal_flag_ignored,
    first_on_first,
    not_itself,
    not_itself_and_the_first_averages,
    computed_in_float32,
    detached,
    the_whole_table_is_made,
)
