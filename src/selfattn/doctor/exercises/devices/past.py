"""`past(rank, source, n)`: which keys of another rank lie in the past."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe


def of_ranks(rank, source, n=3):
    """Three numbers as the inputs of a probe."""
    return {
        "rank": lambda _: rank,
        "source": lambda _: source,
        "n": lambda _: n,
    }


def places(rank, source, n):
    """The numbers of a rank's queries, as a column, and of the keys."""
    i = n * rank + torch.arange(n)
    return i[:, None], n * source + torch.arange(n)


def solution(rank, source, n):
    """Compared by the places in the whole sequence."""
    i, j = places(rank, source, n)
    return j <= i


@mistake
def by_local_places(rank, source, n):
    """Right for a rank's own keys, and a triangle for all others.

    Cause: Queries and keys of every block were counted from 0.
    Cure: Count from where the rank's tokens begin: n times its number.
    """
    return torch.ones(n, n, dtype=torch.bool).tril()


@mistake
def no_triangle_at_home(rank, source, n):
    """A rank's queries see its own later tokens.

    Cause: Ranks were compared, and tokens were not.
    Cure: Within its own block, j <= i.
    """
    return torch.full((n, n), source <= rank)


@mistake
def own_block_hidden(rank, source, n):
    """A rank sees the ranks before it, and none of its own tokens.

    Cause: source < rank, and nothing for a rank's own block.
    Cure: Compare the places of the tokens.
    """
    return torch.full((n, n), source < rank)


@mistake
def not_itself(rank, source, n):
    """A token does not see itself.

    Cause: The places are compared with < .
    Cure: j <= i: the diagonal belongs to the past.
    """
    i, j = places(rank, source, n)
    return j < i


@mistake
def upside_down(rank, source, n):
    """Your queries see the future, and nothing else.

    Cause: True is where a query may not look.
    Cure: Turn it round: j <= i is what may be seen.
    """
    i, j = places(rank, source, n)
    return j > i


@mistake
def keys_as_rows(rank, source, n):
    """Rows and columns have changed places.

    Cause: Keys run down and queries across.
    Cure: A row for each query: i[:, None].
    """
    i, j = places(rank, source, n)
    return (j <= i).T


@mistake
def ranks_exchanged(rank, source, n):
    """Each rank sees those behind it.

    Cause: The queries were placed by `source` and the keys by `rank`.
    Cure: Queries stay on `rank`; what has travelled comes from `source`.
    """
    i, j = places(source, rank, n)
    return j <= i


@mistake
def one_too_many(rank, source, n):
    """Each token sees one of the future.

    Cause: The last key is counted twice: j <= i + 1.
    Cure: j <= i.
    """
    i, j = places(rank, source, n)
    return j <= i + 1


PAST = Exercise(
    "devices/past",
    asks="True where key j of rank `source` is not after query i of `rank`",
    solution=solution,
    probes=(
        Probe("its own block is a triangle", of_ranks(1, 1)),
        Probe("all of an earlier rank is past", of_ranks(2, 0)),
        Probe("nothing of a later rank is", of_ranks(0, 1)),
        Probe("the rank just before, too", of_ranks(3, 2, 5)),
        Probe("a rank may have one token", of_ranks(1, 1, 1)),
    ),
    mistakes=(
        by_local_places,
        no_triangle_at_home,
        own_block_hidden,
        not_itself,
        upside_down,
        keys_as_rows,
        ranks_exchanged,
        one_too_many,
    ),
)
