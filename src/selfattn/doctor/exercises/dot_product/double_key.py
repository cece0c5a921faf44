"""A prediction: the weights of “the” when the key of “cat” is doubled.

The numbers are the running example's, *the cat sat*.
"""

import math

import torch

from selfattn.doctor.exercise import mistaken_value, prediction

THE = torch.tensor([1.0, 0.0])
KEYS = torch.tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 1.0]])
DOUBLED = torch.tensor([[1.0, 1.0], [4.0, 0.0], [0.0, 1.0]])


@mistaken_value
def nothing_changes():
    """These are the weights from before.

    Cause: The score of “cat” is k·q, and doubling k doubles it.
    Cure: Begin with the new scores: 1, 4 and 0.
    """
    return (KEYS @ THE / math.sqrt(2)).softmax(dim=-1)


@mistaken_value
def weight_doubled():
    """These sum to more than one.

    Cause: The weight of “cat” was doubled. It is its score that doubles.
    Cure: Begin with the new scores, 1, 4 and 0, and take the softmax anew.
    """
    return nothing_changes.answer * torch.tensor([1.0, 2.0, 1.0])


@mistaken_value
def weight_doubled_and_shared():
    """“cat” gets too little.

    Cause: Its weight was doubled, and all were divided by the new sum. But
        the exponential of its score is squared, not doubled.
    Cure: Begin with the new scores, 1, 4 and 0, and take the softmax anew.
    """
    return weight_doubled.answer / weight_doubled.answer.sum()


@mistaken_value
def no_scale():
    """“cat” gets too much.

    Cause: The scores were not divided by √2.
    Cure: Softmax of (1, 4, 0) / √2.
    """
    return (DOUBLED @ THE).softmax(dim=-1)


@mistaken_value
def scaled_by_2():
    """“cat” gets too little.

    Cause: The scores were divided by d = 2, not by its square root.
    Cure: Softmax of (1, 4, 0) / √2.
    """
    return (DOUBLED @ THE / 2).softmax(dim=-1)


@mistaken_value
def all_keys_doubled():
    """“cat” gets too little, and so does “sat”.

    Cause: All scores were doubled, as if every key were.
    Cure: Only the second score changes: 1, 4 and 0.
    """
    return (2 * KEYS @ THE / math.sqrt(2)).softmax(dim=-1)


@mistaken_value
def scores_shared_without_exponential():
    """Here “sat” gets nothing, and softmax never gives nothing.

    Cause: The scores were divided by their sum.
    Cure: Take their exponentials first, of (1, 4, 0) / √2.
    """
    return DOUBLED @ THE / (DOUBLED @ THE).sum()


@mistaken_value
def exponentials_as_weights():
    """These are right up to a factor: they do not sum to one.

    Cause: The exponentials were not divided by their sum.
    Cure: Divide each by the sum of the three.
    """
    return (DOUBLED @ THE / math.sqrt(2)).exp()


@mistaken_value
def no_softmax():
    """These are scores, not weights.

    Cause: The softmax is missing.
    Cure: Divide them by √2 and take the softmax.
    """
    return DOUBLED @ THE


@mistaken_value
def tokens_in_another_order():
    """The numbers are right, but not where they belong.

    Cause: “the” and “cat” are exchanged.
    Cure: Write the weights in the order of the tokens: the, cat, sat.
    """
    return (DOUBLED @ THE / math.sqrt(2)).softmax(dim=-1)[[1, 0, 2]]


@mistaken_value
def query_doubled_as_well():
    """“cat” gets too much.

    Cause: Its score was multiplied by four, as if its query had doubled too.
    Cure: The score of “the” with “cat” is (1, 0)·(4, 0) = 4.
    """
    return (torch.tensor([1.0, 8.0, 0.0]) / math.sqrt(2)).softmax(dim=-1)


DOUBLE_KEY = prediction(
    "dot_product/double_key",
    asks="the weights of “the” when the key of “cat” is doubled",
    solution=(DOUBLED @ THE / math.sqrt(2)).softmax(dim=-1),
    mistakes=(
        nothing_changes,
        weight_doubled,
        weight_doubled_and_shared,
        no_scale,
        scaled_by_2,
        all_keys_doubled,
        scores_shared_without_exponential,
        exponentials_as_weights,
        no_softmax,
        tokens_in_another_order,
        query_doubled_as_well,
    ),
)
