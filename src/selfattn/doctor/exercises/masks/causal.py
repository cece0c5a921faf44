"""`causal_mask(n_q, n_k)`: the last query sits on the last key."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe
from selfattn.masks import causal_mask


def sizes(n_q, n_k):
    """Two numbers as the inputs of a probe."""
    return {"n_q": lambda _: n_q, "n_k": lambda _: n_k}


def of_lengths(claim: str, n_q: int, n_k: int) -> Probe:
    """Of other numbers of queries than keys: there, conventions differ."""
    needs = ("length", "early") if n_q > n_k else ("length",)
    return Probe(claim, sizes(n_q, n_k), needs=needs, convention="alignment")


def triangle(n_q, n_k, diagonal=0):
    """True on the diagonal and below it."""
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(diagonal)


@mistake
def first_on_first(n_q, n_k):
    """Right as long as there are as many queries as keys.

    Cause: The first query sits on the first key, as in a triangle cut into
        the table. A model that writes with a cache would see its beginning
        alone.
    Cure: Move the queries along by n_k - n_q.
    """
    return triangle(n_q, n_k)


@mistake
def upside_down(n_q, n_k):
    """Your queries see the future, and nothing else.

    Cause: True is where a query may not look.
    Cure: Turn it round, with ~ or with <= in place of >.
    """
    return ~causal_mask(n_q, n_k)


@mistake
def not_itself(n_q, n_k):
    """A token does not see itself, so the first sees nothing.

    Cause: The keys before it are compared with < .
    Cure: j <= i: the diagonal belongs to the past.
    """
    return triangle(n_q, n_k, n_k - n_q - 1)


@mistake
def one_too_many(n_q, n_k):
    """Each token sees the next one, the very one that it is to guess.

    Cause: The diagonal is off by one, or positions are counted from 1 in
        one place and from 0 in the other.
    Cure: j <= i, both from 0.
    """
    return triangle(n_q, n_k, n_k - n_q + 1)


@mistake
def on_its_side(n_q, n_k):
    """Keys see queries, and the table has n_k rows.

    Cause: Rows and columns are exchanged.
    Cure: A row is a query: i[:, None] and j[None, :].
    """
    return causal_mask(n_q, n_k).mT


@mistake
def from_the_other_side(n_q, n_k):
    """Each token sees itself and what comes after it.

    Cause: This is the upper triangle: j >= i, or triu.
    Cure: The past is to the left: j <= i, or tril.
    """
    return torch.ones(n_q, n_k, dtype=torch.bool).triu(n_k - n_q)


@mistake
def shifted_the_wrong_way(n_q, n_k):
    """With fewer queries than keys, most rows are empty.

    Cause: The queries are moved along by n_q - n_k.
    Cure: By n_k - n_q: the last query, n_q - 1, sits on key n_k - 1.
    """
    return triangle(n_q, n_k, n_q - n_k)


@mistake
def shifted_by_the_difference(n_q, n_k):
    """With more queries than keys, all of them see everything.

    Cause: The queries are moved along by the difference, without its sign.
    Cure: By n_k - n_q, which is negative here: the first queries come before
        every key and see none.
    """
    return triangle(n_q, n_k, abs(n_k - n_q))


@mistake
def numbers_not_booleans(n_q, n_k):
    """The pattern is right, but it is made of ones and zeros.

    Cause: torch.ones makes float32.
    Cure: dtype=torch.bool. Of numbers nobody can tell what they mean.
    """
    return causal_mask(n_q, n_k).float()


@mistake
def whole_numbers(n_q, n_k):
    """The pattern is right, but it is made of whole numbers.

    Cause: Ones and zeros of an integer type, whose ~ is -2 and -1.
    Cure: dtype=torch.bool, or .bool() at the end.
    """
    return causal_mask(n_q, n_k).long()


@mistake
def numbers_to_add(n_q, n_k):
    """The pattern is right, but it is one to add to scores.

    Cause: It holds 0 and minus infinity.
    Cure: Booleans are asked for: True where a query may look.
    """
    return torch.zeros(n_q, n_k).masked_fill(
        ~causal_mask(n_q, n_k), -torch.inf
    )


@mistake
def square(n_q, n_k):
    """The table has as many rows as columns.

    Cause: Only one of the two numbers is used.
    Cure: n_q rows and n_k columns.
    """
    return causal_mask(n_k, n_k)


CAUSAL = Exercise(
    "masks/causal",
    asks="a boolean table, True where a query may look at a key",
    solution=causal_mask,
    probes=(
        Probe("each of three sees what came before, and itself", sizes(3, 3)),
        of_lengths("with a cache, one new query sees everything", 1, 7),
        of_lengths("with a cache, the last query sits on the last key", 3, 7),
        of_lengths("queries before the first key see nothing", 7, 3),
        Probe("one token sees itself", sizes(1, 1)),
        Probe("no queries make no rows", sizes(0, 3), needs=("rowless",)),
    ),
    mistakes=(
        first_on_first,
        upside_down,
        not_itself,
        one_too_many,
        on_its_side,
        from_the_other_side,
        shifted_the_wrong_way,
        shifted_by_the_difference,
        numbers_not_booleans,
        whole_numbers,
        numbers_to_add,
        square,
    ),
)
