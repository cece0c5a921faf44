"""A prediction: how many directions make an estimate right to a tenth."""

import math

from selfattn.doctor.exercise import mistaken_value, prediction

# *The* asks itself: q = (1, 0), k = (1, 1), so q + k = (2, 1), of squared
# length 5; over the root of d = 2 that is 3.536.
LONG = 5 / math.sqrt(2)


@mistaken_value
def not_scaled():
    """It is far too many.

    Cause: The squared length 5 was not divided by the root of d.
    Cure: Both vectors are divided by d^¼, so the square by √2: 3.536.
    """
    return 100 * math.expm1(5.0)


@mistaken_value
def divided_by_d():
    """It is too few.

    Cause: The squared length was divided by d.
    Cure: By its root: each vector is divided by d^¼ only.
    """
    return 100 * math.expm1(5 / 2)


@mistaken_value
def of_the_difference():
    """That is how far apart the two are.

    Cause: The length of q - k was taken; with that grows the spread of
        trigonometric features.
    Cure: For positive features it is q + k = (2, 1).
    """
    return 100 * math.expm1(1 / math.sqrt(2))


@mistaken_value
def deviation_not_squared():
    """With so few the deviation is a third, not a tenth.

    Cause: The variance was divided by a tenth. The deviation is its root.
    Cure: A tenth of deviation is a hundredth of variance.
    """
    return 10 * math.expm1(LONG)


@mistaken_value
def without_the_one():
    """It is a hundred too many.

    Cause: The square of the mean was not taken off: that is the second
        moment.
    Cure: The variance is e to the length, less one.
    """
    return 100 * math.exp(LONG)


@mistaken_value
def length_not_squared():
    """It is too few.

    Cause: The length of q + k is in the exponent, not its square.
    Cure: The exponent is |q + k|²/√d.
    """
    return 100 * math.expm1(math.sqrt(LONG))


HOW_MANY = prediction(
    "performer/how_many",
    asks="the number of directions for a deviation of a tenth",
    solution=100 * math.expm1(LONG),
    mistakes=(
        not_scaled,
        divided_by_d,
        of_the_difference,
        deviation_not_squared,
        without_the_one,
        length_not_squared,
    ),
    tolerance=35.0,
)
