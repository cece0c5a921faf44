"""A prediction: mean and variance of q·k as `nn.Linear` starts.

Components of variance 1/3, 81 of them: three numbers are asked for, the mean
of q·k, its variance, and its variance after the division by √81.
"""

import torch

from selfattn.doctor.exercise import mistaken_value, prediction


@mistaken_value
def unit_variance():
    """These hold for components of variance one.

    Cause: 81 products, each counted with variance 1.
    Cure: The variance of a product of two independent numbers of mean 0 is
        the product of their variances: 1/3 times 1/3.
    """
    return [0, 81, 1]


@mistaken_value
def one_third_only():
    """The variance is three times too large.

    Cause: Each product was given the variance 1/3, that of one factor.
    Cure: Both factors have it: 1/3 times 1/3.
    """
    return [0, 27, 1 / 3]


@mistaken_value
def one_third_and_divided_once():
    """Both variances are too large.

    Cause: Each product was given the variance 1/3, that of one factor; and
        dividing by 9 was taken to divide the variance by 9.
    Cure: 1/3 times 1/3 for each product; then the variance is divided by 81.
    """
    return [0, 27, 3]


@mistaken_value
def variances_added():
    """The variance is too large.

    Cause: The variances of the two factors were added. Variances add up for
        sums; for a product of independent numbers of mean 0 they multiply.
    Cure: 1/3 times 1/3 for each product, and then the sum over 81 of them.
    """
    return [0, 54, 2 / 3]


@mistaken_value
def deviations():
    """These are standard deviations.

    Cause: The root was taken of both variances.
    Cure: Square them.
    """
    return [0, 3, 1 / 3]


@mistaken_value
def divided_once():
    """The last number is too large.

    Cause: The variance was divided by √81 = 9. Dividing a number by 9 divides
        its variance by the square of 9.
    Cure: Divide the variance by 81.
    """
    return [0, 9, 1]


@mistaken_value
def divided_by_the_width():
    """The last number is too small.

    Cause: The scores were divided by 81, so that the variance fell by the
        square of 81.
    Cure: Divide the scores by √81: the variance falls by 81.
    """
    return [0, 9, 9 / 81**2]


@mistaken_value
def not_divided():
    """The last number is that before the division.

    Cause: The division by √81 was left out.
    Cure: Divide the variance by 81.
    """
    return [0, 9, 9]


@mistaken_value
def one_product():
    """Both variances are 81 times too small.

    Cause: 1/9 is the variance of one product; a score is a sum of 81.
    Cure: Variances of independent numbers add up: 81 times 1/9.
    """
    return [0, 1 / 9, 1 / 729]


@mistaken_value
def one_product_divided_once():
    """Both variances are too small.

    Cause: 1/9 is the variance of one product, and a score is a sum of 81;
        and dividing by 9 was taken to divide the variance by 9.
    Cure: 81 times 1/9 for the sum; then the variance is divided by 81.
    """
    return [0, 1 / 9, 1 / 81]


@mistaken_value
def the_mean_grows():
    """The mean is not 9.

    Cause: It is the variance that grows with the width.
    Cure: Each product has the mean 0 times 0, and so has their sum.
    """
    return [9, 9, 1 / 9]


VARIANCE = prediction(
    "scaling/variance",
    asks="mean, variance, and variance after the division",
    solution=torch.tensor([0, 9, 1 / 9], dtype=torch.float64),
    mistakes=(
        unit_variance,
        one_third_only,
        one_third_and_divided_once,
        variances_added,
        deviations,
        divided_once,
        divided_by_the_width,
        not_divided,
        one_product,
        one_product_divided_once,
        the_mean_grows,
    ),
)
