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


@mistaken_value
def neither_turned_nor_scaled():
    """These are the weights without positions, of scores that are too large.

    Cause: Nothing was turned, and nothing divided by √2.
    Cure: Turn “sat” and the keys by their distances, 2, 1 and 0 radians;
        divide by √2.
    """
    return weights(math.sqrt(2) * SAT, KEYS)


@mistaken_value
def in_degrees():
    """These belong to tokens that have hardly turned.

    Cause: A radian was taken for a degree: cos 2 is −.416, and not .999.
    Cure: Set the calculator to radians.
    """
    turned = torch.tensor([2.0, 1.0, 0.0]).deg2rad()
    x, y = SAT[0]
    back = torch.stack(
        (
            x * turned.cos() - y * turned.sin(),
            x * turned.sin() + y * turned.cos(),
        ),
        dim=-1,
    )
    return ((back * KEYS).sum(dim=-1) / math.sqrt(2)).softmax(dim=-1)


@mistaken_value
def scaled_by_2():
    """The three shares are too even.

    Cause: The scores were divided by d = 2, not by its square root.
    Cure: Divide them by √2.
    """
    return weights(rope(SAT, offset=2) / math.sqrt(2), rope(KEYS))


@mistaken_value
def one_place_too_far():
    """These belong to a query that stands one place further on.

    Cause: The distances were taken for 3, 2 and 1.
    Cure: “sat” stands at its own place: its distance to itself is 0, to
        “cat” 1, to “the” 2.
    """
    return weights(rope(SAT, offset=3), rope(KEYS))


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
        neither_turned_nor_scaled,
        in_degrees,
        scaled_by_2,
        one_place_too_far,
    ),
)
