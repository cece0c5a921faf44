"""`layer_norm(x, gain, shift, eps)`: each token to mean 0 and variance 1."""

from collections.abc import Callable

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import (
    SQUARE,
    Inputs,
    Probe,
    Sizes,
    in_other_order,
    louder,
)


def epsilon(sizes):
    """PyTorch's default."""
    return 1e-5


def large_epsilon(sizes):
    """Half: no small matter any more."""
    return 0.5


Sources = dict[str, str | Callable[[Sizes], object]]
ROWS: Sources = {"x": "n d", "gain": "d", "shift": "d", "eps": epsilon}
BATCH = ROWS | {"x": "batch n d"}


def for_each_token(rows: Sources) -> tuple[Probe, ...]:
    """The probes that a norm of tokens keeps them apart."""
    return (
        Probe("it is the formula, by rows", rows, gradient=True),
        Probe(
            "rows are rows, when there are as many columns",
            rows,
            SQUARE,
            needs=("any width",),
        ),
        Probe(
            "one token without a sequence will do",
            rows | {"x": "d"},
            needs=("single",),
        ),
        Probe(
            "every token of a batch is on its own", rows | {"x": "batch n d"}
        ),
    )


def of_type(dtype: torch.dtype, rows: Sources, convention="") -> Probe:
    """The probe that a number type other than float32 is kept."""
    name = str(dtype).removeprefix("torch.")
    return Probe(
        f"{name} stays {name}",
        rows,
        dtype=dtype,
        needs=(name,),
        convention=convention,
    )


def all_features_equal(inputs: Inputs) -> None:
    """Every token's features are all 2: there is no variance."""
    inputs["x"][...] = 2.0


def far_from_zero(inputs: Inputs) -> None:
    """All features close to 1,000."""
    inputs["x"] += 1000


def moments(x, dim=-1):
    """Mean and biased variance, with the axis kept."""
    return x.mean(dim, keepdim=True), x.var(dim, correction=0, keepdim=True)


@mistake
def eps_outside_the_root(x, gain, shift, eps):
    """Tokens with little variance come out too large.

    Cause: eps is added to the deviation, σ + eps, and a σ of 1e-4 is not
        small beside that.
    Cure: Add it to the variance, under the root: (var + eps).sqrt().
    """
    mean, var = moments(x)
    return (x - mean) / (var.sqrt() + eps) * gain + shift


@mistake
def bessel(x, gain, shift, eps):
    """Your numbers are too small.

    Cause: var() and std() divide by d - 1, Bessel's correction for samples.
    Cure: A token is no sample. Divide by d: x.var(-1, correction=0,
        keepdim=True).
    """
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, keepdim=True)
    return (x - mean) / (var + eps).sqrt() * gain + shift


@mistake
def sample_deviation_plus_eps(x, gain, shift, eps):
    """Your numbers are too small, and those of quiet tokens too large.

    Cause: std() divides by d - 1, and eps is added to it instead of to the
        variance.
    Cure: var = x.var(-1, correction=0, keepdim=True), then divide by
        (var + eps).sqrt().
    """
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / (x.std(-1, keepdim=True) + eps) * gain + shift


@mistake
def no_eps(x, gain, shift, eps):
    """A token whose features are all equal gives NaN.

    Cause: Its variance is zero, and so is what you divide by.
    Cure: Add eps to the variance, under the root.
    """
    mean, var = moments(x)
    return (x - mean) / var.sqrt() * gain + shift


@mistake
def over_the_tokens(x, gain, shift, eps):
    """Your columns have mean 0, and your rows have not.

    Cause: Mean and variance run over the tokens, dim=-2.
    Cure: Over the features of each token: dim=-1.
    """
    mean, var = moments(x, -2)
    return (x - mean) / (var + eps).sqrt() * gain + shift


@mistake
def over_the_first_axis(x, gain, shift, eps):
    """In a batch the sequences are mixed; without one, the tokens.

    Cause: Mean and variance run along dim=0, as in batch normalisation.
    Cure: Over the features of each token: dim=-1.
    """
    mean, var = moments(x, 0)
    return (x - mean) / (var + eps).sqrt() * gain + shift


@mistake
def over_everything(x, gain, shift, eps):
    """What one token becomes depends on all the others.

    Cause: x.mean() without dim is the mean of the whole table.
    Cure: Each token has a mean of its own: x.mean(-1, keepdim=True).
    """
    mean, var = x.mean(), x.var(correction=0)
    return (x - mean) / (var + eps).sqrt() * gain + shift


@mistake
def over_a_whole_sequence(x, gain, shift, eps):
    """What one token becomes depends on the others of its sequence.

    Cause: Mean and variance run over tokens and features together.
    Cure: Over the features alone: dim=-1.
    """
    dims = tuple(range(-min(2, x.ndim), 0))
    mean, var = moments(x, dims)
    return (x - mean) / (var + eps).sqrt() * gain + shift


@mistake
def not_centred(x, gain, shift, eps):
    """Your tokens keep their mean.

    Cause: x is divided but its mean is not subtracted.
    Cure: Divide x - mean.
    """
    _, var = moments(x)
    return x / (var + eps).sqrt() * gain + shift


@mistake
def root_mean_square(x, gain, shift, eps):
    """Your tokens keep their mean, and have mean square 1.

    Cause: This is RMSNorm, with a shift.
    Cure: Subtract the mean first; then the mean square is the variance.
    """
    square = x.square().mean(-1, keepdim=True)
    return x / (square + eps).sqrt() * gain + shift


@mistake
def divided_by_the_variance(x, gain, shift, eps):
    """Doubling a token halves what comes out.

    Cause: x - mean is divided by the variance, not by its root.
    Cure: Divide by (var + eps).sqrt().
    """
    mean, var = moments(x)
    return (x - mean) / (var + eps) * gain + shift


@mistake
def no_gain(x, gain, shift, eps):
    """What comes out does not depend on the gain.

    Cause: The gain is not used.
    Cure: Multiply by it after dividing, before adding the shift.
    """
    mean, var = moments(x)
    return (x - mean) / (var + eps).sqrt() + shift


@mistake
def no_shift(x, gain, shift, eps):
    """Every token comes out less the shift.

    Cause: The shift is not added.
    Cure: Add it last.
    """
    mean, var = moments(x)
    return (x - mean) / (var + eps).sqrt() * gain


@mistake
def neither_gain_nor_shift(x, gain, shift, eps):
    """Every token comes out with mean 0 and variance 1.

    Cause: Neither the gain nor the shift is used.
    Cure: Multiply by the gain after dividing, then add the shift.
    """
    mean, var = moments(x)
    return (x - mean) / (var + eps).sqrt()


@mistake
def bare_with_eps_outside_the_root(x, gain, shift, eps):
    """Every token comes out with mean 0, and quiet ones come out too large.

    Cause: Neither the gain nor the shift is used, and eps is added to the
        deviation instead of to the variance.
    Cure: Divide by (var + eps).sqrt(), times the gain, plus the shift.
    """
    mean, var = moments(x)
    return (x - mean) / (var.sqrt() + eps)


@mistake
def bare_with_sample_deviation(x, gain, shift, eps):
    """Every token comes out with mean 0 and a variance below 1.

    Cause: Neither the gain nor the shift is used; std() divides by d - 1,
        and eps is added to it instead of to the variance.
    Cure: var = x.var(-1, correction=0, keepdim=True), then divide by
        (var + eps).sqrt(), times the gain, plus the shift.
    """
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / (x.std(-1, keepdim=True) + eps)


@mistake
def shifted_before_the_gain(x, gain, shift, eps):
    """The shift is multiplied, too.

    Cause: It is added before the gain.
    Cure: First times gain, then plus shift.
    """
    mean, var = moments(x)
    return ((x - mean) / (var + eps).sqrt() + shift) * gain


@mistake
def mean_of_squares_less_square_of_mean(x, gain, shift, eps):
    """Tokens that lie far from zero come out noisy, or as NaN.

    Cause: The variance is taken as mean(x²) - mean(x)². At 1,000 these are
        two numbers near 1,000,000 that agree in all but the last digits.
    Cure: Centre first, then square: (x - mean).square().mean(-1).
    """
    mean = x.mean(-1, keepdim=True)
    var = x.square().mean(-1, keepdim=True) - mean.square()
    return (x - mean) / (var + eps).sqrt() * gain + shift


@mistake
def no_keepdim(x, gain, shift, eps):
    """It fails on most tables, and on a square one it mixes the tokens.

    Cause: Without keepdim a mean of shape (n,) lines up with the features.
    Cure: x.mean(-1, keepdim=True), and the same for the variance.
    """
    mean, var = x.mean(-1), x.var(-1, correction=0)
    return (x - mean) / (var + eps).sqrt() * gain + shift


@mistake
def changed_in_place(x, gain, shift, eps):
    """The caller's x is changed, and with it the residual path.

    Cause: x -= … writes into the tensor that was handed in.
    Cure: x - mean makes a new one.
    """
    x -= x.mean(-1, keepdim=True)
    var = x.square().mean(-1, keepdim=True)
    return x / (var + eps).sqrt() * gain + shift


LAYER_NORM = Exercise(
    "layers/layer_norm",
    asks="(x - mean) / √(var + eps) · gain + shift, for each token",
    solution=lambda x, gain, shift, eps: torch.nn.functional.layer_norm(
        x, gain.shape, gain, shift, eps
    ),
    probes=(
        *for_each_token(ROWS),
        Probe(
            "a token with a single feature becomes its shift",
            ROWS,
            {"d": 1},
            needs=("any width",),
        ),
        of_type(torch.float64, ROWS, convention="precision"),
        Probe(
            "eps may be large", ROWS | {"eps": large_epsilon}, needs=("eps",)
        ),
        Probe(
            "a token with little variance is not blown up",
            ROWS,
            change=louder("x", times=1e-4),
        ),
        Probe(
            "a token with no variance becomes the shift",
            ROWS,
            change=all_features_equal,
            # Whose mean is off by its last digit divides that by √eps.
            tolerance=0.002,
        ),
        Probe(
            "tokens may lie far from zero",
            ROWS,
            change=far_from_zero,
            # Next to 1,000 the float32 numbers lie 0.00006 apart, and a
            # right answer may have come by the mean's last digit.
            tolerance=0.002,
        ),
        Probe(
            "the order in memory does not matter",
            BATCH,
            change=in_other_order,
        ),
    ),
    mistakes=(
        eps_outside_the_root,
        bessel,
        sample_deviation_plus_eps,
        no_eps,
        over_the_tokens,
        over_the_first_axis,
        over_everything,
        over_a_whole_sequence,
        not_centred,
        root_mean_square,
        divided_by_the_variance,
        no_gain,
        no_shift,
        neither_gain_nor_shift,
        bare_with_eps_outside_the_root,
        bare_with_sample_deviation,
        shifted_before_the_gain,
        mean_of_squares_less_square_of_mean,
        no_keepdim,
        changed_in_place,
    ),
)
