"""The mistakes of the kind `rms-norm`."""

import torch

from selfattn.doctor.exercise import mistake, mistake_as
from selfattn.doctor.kinds.norms.rms_norm.reference import normal


def scaled(x, square, gain, eps, dim=-1):
    """Divide by a root, in x's own type."""
    return (x / (square + eps).sqrt() * gain).to(x.dtype)


def mean_square(x):
    """The mean of the squares of a token's features, in x's own type."""
    return x.square().mean(dim=-1, keepdim=True)


@mistake
def squares_in_half_precision(x, gain, eps):
    """In float16, loud tokens become zeros.

    Cause: The squares are taken in float16, and 65,504 is its largest
        number.
    Cure: Square and mean in float32; turn the result back.
    Chapter: layers
    Thread: https://github.com/pytorch/pytorch/pull/134106
    """
    if x.dtype == torch.float16:
        return x / (mean_square(x) + eps).sqrt() * gain
    return normal(x, gain, eps)


@mistake
def eps_outside_the_root(x, gain, eps):
    """Tokens with small numbers come out too large.

    Cause: eps is added to the root instead of under it.
    Cure: (mean square + eps).sqrt().
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    root = mean_square(wide).sqrt()
    return (wide / (root + eps) * gain).to(x.dtype)


@mistake
def eps_as_a_floor(x, gain, eps):
    """Tokens with small numbers come out as large as all others.

    Cause: The token is divided by its length, and eps counts only where
        that is next to zero, as in F.normalize.
    Cure: (mean square + eps).sqrt(); or say eps_as='floor', if it is meant.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    length = wide.norm(dim=-1, keepdim=True).clamp(min=eps)
    return (wide / length * wide.shape[-1] ** 0.5 * gain).to(x.dtype)


@mistake
def no_eps(x, gain, eps):
    """A token of zeros gives NaN.

    Cause: Its mean square is zero, and so is what you divide by.
    Cure: Add eps under the root.
    Chapter: layers
    """
    return normal(x, gain, 0.0)


@mistake
def centred(x, gain, eps):
    """Every token comes out with mean 0.

    Cause: The mean is subtracted, as in LayerNorm.
    Cure: RMSNorm does not centre, and has no shift.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    return normal(wide - wide.mean(-1, keepdim=True), gain, eps).to(x.dtype)


@mistake
def divided_by_the_deviation(x, gain, eps):
    """Tokens far from zero come out too large.

    Cause: The variance stands in the place of the mean square.
    Cure: x.square().mean(-1): the mean is not taken off.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    variance = wide.var(-1, correction=0, keepdim=True)
    return scaled(wide, variance, gain, eps).to(x.dtype)


@mistake
def sum_instead_of_mean(x, gain, eps):
    """The wider the model, the smaller the numbers.

    Cause: The squares are summed: the token is divided by its length.
    Cure: Their mean.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    square = wide.square().sum(-1, keepdim=True)
    return scaled(wide, square, gain, eps).to(x.dtype)


@mistake
def no_root(x, gain, eps):
    """Loud tokens come out quiet, and quiet ones loud.

    Cause: It divides by the mean square itself.
    Cure: By its root; rsqrt, if you multiply.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    return (wide / (mean_square(wide) + eps) * gain).to(x.dtype)


@mistake
def multiplied_by_the_root(x, gain, eps):
    """Loud tokens come out louder.

    Cause: sqrt where rsqrt was meant.
    Cure: Divide by the root, or multiply by rsqrt.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    return (wide * (mean_square(wide) + eps).sqrt() * gain).to(x.dtype)


@mistake
def mean_of_absolute_values(x, gain, eps):
    """The numbers are too large.

    Cause: mean(|x|) stands in the place of √mean(x²).
    Cure: Square, mean, root.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    size = wide.abs().mean(-1, keepdim=True)
    return (wide / (size + eps) * gain).to(x.dtype)


@mistake_as(mean_of_absolute_values)
def root_of_the_mean_of_absolute_values(x, gain, eps):
    wide = x.float() if x.element_size() < 4 else x
    return scaled(wide, wide.abs().mean(-1, keepdim=True), gain, eps)


@mistake
def over_the_tokens(x, gain, eps):
    """Each feature is normalised over the tokens.

    Cause: The mean runs along dim=-2 or dim=1.
    Cure: dim=-1: each token on its own.
    Chapter: layers
    """
    if x.ndim < 2:
        return normal(x, gain, eps)
    wide = x.float() if x.element_size() < 4 else x
    square = wide.square().mean(dim=-2, keepdim=True)
    return scaled(wide, square, gain, eps).to(x.dtype)


@mistake
def over_everything(x, gain, eps):
    """One loud token makes all others quiet.

    Cause: mean() without an axis.
    Cure: dim=-1, keepdim=True.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    return scaled(wide, wide.square().mean(), gain, eps).to(x.dtype)


@mistake
def no_gain(x, gain, eps):
    """It cannot learn how loud a feature shall be.

    Cause: The parameter is made, and not used.
    Cure: Multiply by it.
    Chapter: layers
    """
    return normal(x, torch.ones_like(gain), eps)


@mistake
def one_plus_the_gain(x, gain, eps):
    """Each number is larger by one normalised x.

    Cause: It multiplies by 1 + gain, as Gemma does, whose gains start at 0.
    Cure: Multiply by gain, which starts at 1.
    Chapter: layers
    """
    return normal(x, 1 + gain, eps)


@mistake
def computed_in_float32(x, gain, eps):
    """In float64, only the first seven digits are right.

    Cause: x is turned into float32 to be normalised, and back before the
        gain, as Llama and T5 do.
    Cure: Only half precision needs more digits; leave float64 as it is.
    Chapter: layers
    """
    narrow = x.float()
    plain = narrow * torch.rsqrt(mean_square(narrow) + eps)
    return (plain.to(x.dtype) * gain).to(x.dtype)


@mistake
def squares_in_float32(x, gain, eps):
    """In float64, only the first seven digits are right.

    Cause: The mean square is taken in float32, and all else in float64.
    Cure: Only half precision needs more digits; leave float64 as it is.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    root = torch.rsqrt(mean_square(x.float()) + eps)
    return ((wide * root).to(x.dtype) * gain).to(x.dtype)


@mistake
def float32_returned(x, gain, eps):
    """bfloat16 goes in, float32 comes out.

    Cause: It is computed in float32, and left there.
    Cure: .to(x.dtype) at the end.
    Chapter: layers
    """
    return normal(x.float() if x.element_size() < 4 else x, gain, eps)


@mistake
def changed_in_place(x, gain, eps):
    """The caller's x is another one afterwards.

    Cause: x /= … or x *= … writes into the input.
    Cure: x = x / …
    Chapter: layers
    """
    x *= 1 / (mean_square(x) + eps).sqrt()
    return x * gain


MISTAKES = (
    squares_in_half_precision,
    eps_outside_the_root,
    no_eps,
    centred,
    divided_by_the_deviation,
    sum_instead_of_mean,
    no_root,
    multiplied_by_the_root,
    mean_of_absolute_values,
    over_the_tokens,
    over_everything,
    no_gain,
    one_plus_the_gain,
    computed_in_float32,
    squares_in_float32,
    float32_returned,
    changed_in_place,
)
DEVIATIONS = (root_of_the_mean_of_absolute_values, eps_as_a_floor)
CONVENTIONS = {
    "precision": {
        "exact": None,
        "float32": computed_in_float32,
        "mixed": squares_in_float32,
    }
}
