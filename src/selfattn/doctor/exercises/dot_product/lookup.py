"""`lookup(query, keys, values, sharpness)`: a dictionary that averages."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.exercises.dot_product.softmax import shared
from selfattn.doctor.probes import SQUARE, Probe, in_other_order


def soft_lookup(query, keys, values, sharpness):
    """Average the values, by how well their keys match the query."""
    return (sharpness * keys @ query).softmax(dim=-1) @ values


def library(sharpness):
    """The inputs of a lookup."""
    shapes = {"query": "d", "keys": "n d", "values": "n d_v"}
    return {**shapes, "sharpness": lambda sizes: sharpness}


@mistake
def hard_lookup(query, keys, values, sharpness):
    """You return the value of the best key alone.

    Cause: argmax is a hard lookup, the limit of an infinite sharpness.
    Cure: Average all values: softmax(sharpness * keys @ query) @ values.
    """
    return values[(keys @ query).argmax()]


@mistake
def sharpness_forgotten(query, keys, values, sharpness):
    """Your answer does not depend on the sharpness.

    Cause: It is never used.
    Cure: Multiply the scores with it, before the softmax.
    """
    return soft_lookup(query, keys, values, 1.0)


@mistake
def divided_by_the_sharpness(query, keys, values, sharpness):
    """Your lookup gets flatter as the sharpness grows.

    Cause: The scores are divided by it, as if it were a temperature.
    Cure: Multiply: sharpness * keys @ query.
    """
    return soft_lookup(query, keys, values, 1 / sharpness)


@mistake
def sharpness_after_softmax(query, keys, values, sharpness):
    """Your weights sum to the sharpness, not to one.

    Cause: The weights are multiplied with it, after the softmax.
    Cure: Multiply the scores, before it.
    """
    return sharpness * soft_lookup(query, keys, values, 1.0)


@mistake
def scaled_by_the_root_as_well(query, keys, values, sharpness):
    """Your lookup is too flat.

    Cause: The scores are divided by √d as well.
    Cure: Leave that out: here the sharpness alone sets the scale.
    """
    return soft_lookup(query, keys, values, sharpness / query.numel() ** 0.5)


@mistake
def distance_as_score(query, keys, values, sharpness):
    """Your lookup prefers the keys that are far from the query.

    Cause: The score is the squared distance, which is small for a match.
    Cure: Use the product, keys @ query. (Minus half the squared distance is
        a fair score, too, but it is another one.)
    """
    scores = (keys - query).square().sum(dim=-1)
    return (sharpness * scores).softmax(dim=-1) @ values


@mistake
def nearest_key(query, keys, values, sharpness):
    """Your lookup prefers near keys, where long ones should win as well.

    Cause: The score is minus the squared distance.
    Cure: Use the product: keys @ query.
    """
    scores = -(keys - query).square().sum(dim=-1)
    return (sharpness * scores).softmax(dim=-1) @ values


@mistake
def wrong_sign(query, keys, values, sharpness):
    """Your lookup prefers the keys that match worst.

    Cause: There is a minus before the scores.
    Cure: Leave it out: softmax(sharpness * keys @ query).
    """
    return soft_lookup(-query, keys, values, sharpness)


@mistake
def softmax_of_the_values(query, keys, values, sharpness):
    """Your result is not an average of the values.

    Cause: Softmax was taken of the values.
    Cure: It belongs to the scores: softmax(...) @ values.
    """
    return sharpness * (keys @ query) @ values.softmax(dim=-1)


@mistake
def mean_of_the_values(query, keys, values, sharpness):
    """You return the mean of the values, whatever is asked.

    Cause: All keys have the same weight.
    Cure: Weigh them: softmax(sharpness * keys @ query) @ values.
    """
    return values.mean(dim=0)


@mistake
def keys_averaged(query, keys, values, sharpness):
    """What you return has the width of a key.

    Cause: The weights are right, but it is the keys that they average.
    Cure: Keys are for finding; what you get are values: weights @ values.
    """
    return soft_lookup(query, keys, keys, sharpness)


@mistake
def weights_returned(query, keys, values, sharpness):
    """You return one number for each key: the weights.

    Cause: The last step is missing.
    Cure: Average the values with them: weights @ values.
    """
    return (sharpness * keys @ query).softmax(dim=-1)


@mistake
def sum_not_divided(query, keys, values, sharpness):
    """Your result is too long.

    Cause: The exponentials are not divided by their sum.
    Cure: Let softmax do it: (sharpness * keys @ query).softmax(dim=-1).
    """
    return (sharpness * keys @ query).exp() @ values


@mistake
def scores_as_weights(query, keys, values, sharpness):
    """Your weights may be negative, and do not sum to one.

    Cause: The bare scores weigh the values.
    Cure: Put a softmax around them.
    """
    return sharpness * (keys @ query) @ values


@mistake
def scores_divided_by_their_sum(query, keys, values, sharpness):
    """Your weights sum to one, but some are negative.

    Cause: The scores are divided by their sum, without an exponential, so
        that the sharpness cancels out.
    Cure: Use softmax: (sharpness * keys @ query).softmax(dim=-1).
    """
    scores = sharpness * keys @ query
    return scores / scores.sum() @ values


@mistake
def overflows(query, keys, values, sharpness):
    """A large sharpness gives NaN.

    Cause: exp of 89 and more is infinite in float32.
    Cure: Subtract the largest score before exp, or use softmax.
    """
    return shared((sharpness * keys @ query).exp()) @ values


LOOKUP = Exercise(
    "dot_product/lookup",
    asks="softmax(sharpness · keys query) values",
    solution=soft_lookup,
    probes=(
        Probe("it is softmax(keys query) values", library(1.0), gradient=True),
        Probe("a small sharpness flattens", library(0.25), gradient=True),
        Probe("a large sharpness sharpens", library(2.0)),
        Probe("keys are rows, when all is square", library(0.5), SQUARE),
        Probe("a single key gives its value", library(0.5), {"n": 1}),
        Probe("float64 stays float64", library(0.5), dtype=torch.float64),
        Probe("at 10,000 the best key takes all", library(10_000.0)),
        Probe(
            "the order in memory does not matter",
            library(0.5),
            change=in_other_order,
        ),
    ),
    mistakes=(
        hard_lookup,
        sharpness_forgotten,
        divided_by_the_sharpness,
        sharpness_after_softmax,
        scaled_by_the_root_as_well,
        distance_as_score,
        nearest_key,
        wrong_sign,
        softmax_of_the_values,
        mean_of_the_values,
        keys_averaged,
        weights_returned,
        sum_not_divided,
        scores_as_weights,
        scores_divided_by_their_sum,
        overflows,
    ),
)
