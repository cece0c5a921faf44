"""`summaries_mask(n, stride, c)`: the fixed pattern, in causal order."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe


def text(n, stride, c):
    """Three numbers as the inputs of a probe."""
    return {
        "n": lambda _: n,
        "stride": lambda _: stride,
        "c": lambda _: c,
    }


def places(n):
    """Queries down, keys across."""
    return torch.arange(n)[:, None], torch.arange(n)[None, :]


def solution(n, stride, c):
    """The own block or one of the last c of any block, and not later."""
    i, j = places(n)
    own, last = i // stride == j // stride, j % stride >= stride - c
    return (j <= i) & (own | last)


@mistake
def first_of_a_block(n, stride, c):
    """What most tokens say never leaves their block.

    Cause: The first c keys of a block are shown to all. In causal order
        the first of a block has heard none of those after it.
    Cure: The last c: j % stride >= stride - c.
    """
    i, j = places(n)
    return (j <= i) & ((i // stride == j // stride) | (j % stride < c))


@mistake
def one_summary_less(n, stride, c):
    """A block has a summary less.

    Cause: The place in the block is compared with >.
    Cure: The last c places are stride - c and those after it: >=.
    """
    i, j = places(n)
    last = j % stride > stride - c
    return (j <= i) & ((i // stride == j // stride) | last)


@mistake
def one_summary_more(n, stride, c):
    """A block has a summary more.

    Cause: The paper lets j mod l run from l - c to l, both counted; but a
        remainder is never l, and somebody has made up for it.
    Cure: From stride - c to stride - 1.
    """
    i, j = places(n)
    last = j % stride >= stride - c - 1
    return (j <= i) & ((i // stride == j // stride) | last)


@mistake
def both_sides(n, stride, c):
    """Your queries see what comes later.

    Cause: The pattern alone is not causal: the rest of the own block comes
        later, and so do later summaries.
    Cure: Add j <= i.
    """
    i, j = places(n)
    return (i // stride == j // stride) | (j % stride >= stride - c)


@mistake
def block_sees_the_future(n, stride, c):
    """Your queries see to the end of their block.

    Cause: The causal order was put on the summaries alone.
    Cure: j <= i holds for both.
    """
    i, j = places(n)
    last = (j % stride >= stride - c) & (j <= i)
    return (i // stride == j // stride) | last


@mistake
def a_sliding_window(n, stride, c):
    """Your block goes along with the query.

    Cause: The last `stride` keys are a sliding window. In the fixed pattern
        blocks are counted from the first key.
    Cure: i // stride == j // stride.
    """
    i, j = places(n)
    return (j <= i) & ((i - j < stride) | (j % stride >= stride - c))


@mistake
def strided(n, stride, c):
    """Yours is the strided pattern.

    Cause: Keys whole strides away from the query were taken: they go along
        with it.
    Cure: The summaries stand where they stand, whoever asks.
    """
    i, j = places(n)
    return (j <= i) & ((i - j < stride) | ((i - j) % stride == 0))


@mistake
def blocks_alone(n, stride, c):
    """No block hears another.

    Cause: There are no summaries in it.
    Cure: Or j % stride >= stride - c.
    """
    i, j = places(n)
    return (j <= i) & (i // stride == j // stride)


@mistake
def summaries_alone(n, stride, c):
    """Some queries see nothing, not even themselves.

    Cause: The own block is missing.
    Cure: Or i // stride == j // stride.
    """
    i, j = places(n)
    return (j <= i) & (j % stride >= stride - c)


@mistake
def blocked(n, stride, c):
    """True stands where a query may not look.

    Cause: This is the other convention, that of masked_fill.
    Cure: True may look: turn it round with ~.
    """
    return ~solution(n, stride, c)


@mistake
def on_its_side(n, stride, c):
    """Keys see queries.

    Cause: Rows and columns are exchanged.
    Cure: A row is a query: i[:, None] and j[None, :].
    """
    return solution(n, stride, c).mT


SUMMARIES = Exercise(
    "sparse/summaries",
    asks="True where a query may look: its own block, and each block's last",
    solution=solution,
    probes=(
        Probe("the own block and the last of each", text(14, 4, 1)),
        Probe("two summaries a block", text(13, 5, 2)),
        Probe("as many summaries as keys: all of the past", text(11, 3, 3)),
        Probe("a stride longer than the text is causal", text(5, 7, 1)),
        Probe("a stride of 1 is causal", text(7, 1, 1)),
    ),
    mistakes=(
        first_of_a_block,
        one_summary_less,
        one_summary_more,
        both_sides,
        block_sees_the_future,
        a_sliding_window,
        strided,
        blocks_alone,
        summaries_alone,
        blocked,
        on_its_side,
    ),
)
