"""A prediction: layer normalisation of a token, stretched and moved."""

import torch

from selfattn.doctor.exercise import mistaken_value, prediction

MOVED = 10 * torch.tensor([1.0, 1.0, 4.0]) + 7


def normal(x, correction=0):
    """Mean 0, variance 1."""
    return (x - x.mean()) / x.std(correction=correction)


@mistaken_value
def left_as_it_is():
    """Nothing has been normalised.

    Cause: These are the numbers that go in.
    Cure: Subtract their mean, 27, and divide by their deviation.
    """
    return MOVED


@mistaken_value
def centred_alone():
    """The mean is 0, but the variance is not 1.

    Cause: The division is missing.
    Cure: Divide by √((100 + 100 + 400) / 3).
    """
    return MOVED - MOVED.mean()


@mistaken_value
def not_divided():
    """The mean is 0, but the variance is 2.

    Cause: The token was brought back to (1, 1, 4) and centred; the division
        by the deviation is missing.
    Cure: Divide by √((1 + 1 + 4) / 3) = √2.
    """
    return torch.tensor([-1.0, -1.0, 2.0])


@mistaken_value
def bessel():
    """These have a variance below 1.

    Cause: The squares were divided by d - 1 = 2.
    Cure: Divide their sum, 600, by d = 3.
    """
    return normal(MOVED, correction=1)


@mistaken_value
def divided_by_the_variance():
    """These are too small.

    Cause: They were divided by the variance, 200.
    Cure: Divide by its root.
    """
    return (MOVED - MOVED.mean()) / 200


@mistaken_value
def root_mean_square():
    """The mean is not 0.

    Cause: This is RMSNorm, which does not centre.
    Cure: Subtract the mean, 27, first.
    """
    return MOVED / MOVED.square().mean().sqrt()


@mistaken_value
def from_zero_to_one():
    """These run from 0 to 1.

    Cause: The smallest was taken to 0 and the largest to 1.
    Cure: It is the mean that goes to 0, and the deviation that goes to 1.
    """
    return torch.tensor([0.0, 0.0, 1.0])


@mistaken_value
def sum_to_one():
    """These are positive and sum to one, so their mean is not 0.

    Cause: The numbers were divided by their sum.
    Cure: Subtract the mean, divide by the deviation.
    """
    return MOVED / MOVED.sum()


@mistaken_value
def stretched_again():
    """These are ten times too large.

    Cause: The norm of (1, 1, 4) was stretched along with it.
    Cure: Stretching changes the deviation by the same factor; it cancels.
    """
    return 10 * normal(MOVED)


@mistaken_value
def divided_by_the_largest():
    """The largest is 1, but the variance is not.

    Cause: The centred numbers were divided by their largest, or, which comes
        to the same, those of (1, 1, 4) by their variance, 2.
    Cure: Divide by their deviation, the root of their variance.
    """
    return (MOVED - MOVED.mean()) / 20


@mistaken_value
def divided_by_the_length():
    """The squares sum to 1, but it is their mean that should be 1.

    Cause: The centred numbers were divided by their length, √600.
    Cure: Divide by √(600 / 3), the root of the mean of their squares.
    """
    return (MOVED - MOVED.mean()) / 600**0.5


STRETCHED = prediction(
    "layers/stretched",
    asks="the norm of (17, 17, 47)",
    solution=normal(MOVED),
    tolerance=0.02,  # two digits: 1.4 for 1.414, -.71 for -.707,
    mistakes=(
        left_as_it_is,
        centred_alone,
        not_divided,
        bessel,
        divided_by_the_variance,
        root_mean_square,
        from_zero_to_one,
        sum_to_one,
        stretched_again,
        divided_by_the_largest,
        divided_by_the_length,
    ),
)
