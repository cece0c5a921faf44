"""A prediction: the loss of a model that has learnt nothing.

A model is to tell the next of 50 tokens, by cross-entropy as PyTorch counts
it, and its output layer begins at zero.
"""

import math

from selfattn.doctor.exercise import mistaken_value, prediction


@mistaken_value
def in_bits():
    """You have the loss in bits.

    Cause: The logarithm to base 2 was taken.
    Cure: PyTorch's cross-entropy takes the natural one: ln 50.
    """
    return math.log2(50)


@mistaken_value
def in_decimals():
    """You have the loss in decimal digits.

    Cause: The logarithm to base 10 was taken.
    Cure: PyTorch's cross-entropy takes the natural one: ln 50.
    """
    return math.log10(50)


@mistaken_value
def chance():
    """You have the probability of each token.

    Cause: The logarithm is missing.
    Cure: The loss is minus the logarithm of the right token's probability.
    """
    return 1 / 50


@mistaken_value
def sign_lost():
    """A cross-entropy is not negative.

    Cause: The minus sign is missing: this is the logarithm of 1/50.
    Cure: Turn the sign round.
    """
    return math.log(1 / 50)


@mistaken_value
def nothing_to_lose():
    """Only a model that knows every next token has no loss.

    Cause: A model that knows nothing was taken for one that errs in nothing.
    Cure: Each of the 50 tokens has the probability 1/50; the loss is minus
        the logarithm of that.
    """
    return 0.0


FIRST_LOSS = prediction(
    "doctor/first_loss",
    asks="the loss of a model that finds all tokens equally likely",
    solution=math.log(50),
    mistakes=(
        in_bits,
        in_decimals,
        chance,
        sign_lost,
        nothing_to_lose,
    ),
)
