"""A prediction: the weights of “sat” when the sentence stands elsewhere.

The numbers are the running example's, *the cat sat*, turned by RoPE: with
two features there is one pair, and it turns by one radian a position.
"""

import math

import torch

from selfattn.doctor.exercise import mistaken_value, prediction
from selfattn.positions import rope

SAT = torch.tensor([[2.0, 1.0]])
KEYS = torch.tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 1.0]])


def weights(q, k):
    """Weights of one query, (3,)."""
    return (q @ k.mT / math.sqrt(2)).softmax(dim=-1)[0]


@mistaken_value
def no_rotation():
    """These are the weights without positions.

    Cause: Neither the query nor the keys were turned.
    Cure: “sat” stands two places after “the” and one after “cat”, here as
        there; look for the weights with that.
    """
    return weights(SAT, KEYS)


@mistaken_value
def turned_by_a_hundred():
    """These belong to a query that has moved on alone.

    Cause: The query was turned by 102 radians, and the keys by 0, 1 and 2.
    Cure: The keys have moved as well. A score depends on the difference.
    """
    return weights(rope(SAT, offset=102), rope(KEYS))


@mistaken_value
def only_the_keys_turned():
    """These belong to keys that have moved on alone.

    Cause: The keys were turned by 100, 101 and 102 radians, the query by 2.
    Cure: The query has moved as well. A score depends on the difference.
    """
    return weights(rope(SAT, offset=2), rope(KEYS, offset=100))


@mistaken_value
def query_not_turned():
    """These belong to a query at position 0.

    Cause: Only the keys were turned.
    Cure: Queries and keys turn alike, each by its own position.
    """
    return weights(SAT, rope(KEYS))


@mistaken_value
def the_other_way():
    """Here the keys stand after the query.

    Cause: The difference of positions has the wrong sign.
    Cure: Query and key turn the same way.
    """
    return weights(rope(SAT, offset=-2), rope(KEYS.flip(0), offset=-2).flip(0))


@mistaken_value
def no_scale():
    """“the” and “cat” get too different shares.

    Cause: The scores were not divided by √2.
    Cure: Divide them, as ever.
    """
    return weights(math.sqrt(2) * rope(SAT, offset=2), rope(KEYS))


@mistaken_value
def shared_equally():
    """The tokens are still themselves, and their scores differ.

    Cause: Far out was taken for without order.
    Cure: RoPE does not fade with the position. Only the distance counts.
    """
    return torch.full((3,), 1 / 3)


MOVED = prediction(
    "positions/moved",
    asks="the weights of “sat” at positions 100, 101 and 102, under RoPE",
    solution=weights(rope(SAT, offset=2), rope(KEYS)),
    mistakes=(
        no_rotation,
        turned_by_a_hundred,
        only_the_keys_turned,
        query_not_turned,
        the_other_way,
        no_scale,
        shared_equally,
    ),
)
