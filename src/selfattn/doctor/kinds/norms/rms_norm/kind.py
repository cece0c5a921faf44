"""RMSNorm: functions, classes and modules."""

import torch

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.exercises.layers.layer_norm import (
    all_features_equal,
    epsilon,
    large_epsilon,
)
from selfattn.doctor.kind import Fact, Kind
from selfattn.doctor.kinds.norms import calling as norm_adapter
from selfattn.doctor.probes import (
    SQUARE,
    Inputs,
    Probe,
    in_other_order,
    louder,
)

ROWS = {"x": "n d", "gain": "d", "eps": epsilon}
BATCH = ROWS | {"x": "batch n d"}


def silent(inputs: Inputs) -> None:
    """The first token is all zeros."""
    inputs["x"][..., :1, :] = 0.0


def normal(x, gain, eps):
    """Divide by the root of the mean square, in float32 at least."""
    wide = x.float() if x.element_size() < 4 else x
    square = wide.square().mean(dim=-1, keepdim=True)
    return (wide / (square + eps).sqrt() * gain).to(x.dtype)


REFERENCE = Exercise(
    "rms-norm",
    asks="x / √(mean(x²) + eps) · gain, for each token",
    solution=normal,
    probes=(
        Probe("it is the formula, by rows", ROWS, gradient=True),
        Probe(
            "rows are rows, when there are as many columns",
            ROWS,
            SQUARE,
            needs=("any width",),
        ),
        Probe(
            "one token without a sequence will do",
            ROWS | {"x": "d"},
            needs=("single",),
        ),
        Probe("every token of a batch is on its own", BATCH),
        Probe(
            "eps may be large", ROWS | {"eps": large_epsilon}, needs=("eps",)
        ),
        Probe(
            "a token with small numbers is not blown up",
            ROWS,
            change=louder("x", times=1e-4),
        ),
        Probe("a token of zeros stays zeros", ROWS, change=silent),
        Probe("features may be all equal", ROWS, change=all_features_equal),
        Probe(
            "float64 stays float64",
            ROWS,
            dtype=torch.float64,
            needs=("float64",),
            convention="precision",
        ),
        Probe(
            "bfloat16 stays bfloat16",
            ROWS,
            dtype=torch.bfloat16,
            needs=("bfloat16",),
        ),
        Probe(
            "in float16 the squares of large numbers do not overflow",
            ROWS,
            dtype=torch.float16,
            change=louder("x", times=1000.0),
            needs=("float16",),
        ),
        Probe(
            "the order in memory does not matter", BATCH, change=in_other_order
        ),
    ),
    optional=norm_adapter.OPTIONAL,
    conventions={
        "precision": {
            **norm_adapter.CONVENTIONS["precision"],
            "mixed": "squares in float32",
        }
    },
)


def scaled(x, square, gain, eps, dim=-1):
    """Divide by a root, in x's own type."""
    return (x / (square + eps).sqrt() * gain).to(x.dtype)


def mean_square(x):
    """The mean of the squares of a token's features, in x's own type."""
    return x.square().mean(dim=-1, keepdim=True)


@REFERENCE.mistake
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


@REFERENCE.mistake
def eps_outside_the_root(x, gain, eps):
    """Tokens with small numbers come out too large.

    Cause: eps is added to the root instead of under it.
    Cure: (mean square + eps).sqrt().
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    root = mean_square(wide).sqrt()
    return (wide / (root + eps) * gain).to(x.dtype)


@REFERENCE.mistake
def no_eps(x, gain, eps):
    """A token of zeros gives NaN.

    Cause: Its mean square is zero, and so is what you divide by.
    Cure: Add eps under the root.
    Chapter: layers
    """
    return normal(x, gain, 0.0)


@REFERENCE.mistake
def centred(x, gain, eps):
    """Every token comes out with mean 0.

    Cause: The mean is subtracted, as in LayerNorm.
    Cure: RMSNorm does not centre; that is all its difference.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    return normal(wide - wide.mean(-1, keepdim=True), gain, eps).to(x.dtype)


@REFERENCE.mistake
def divided_by_the_deviation(x, gain, eps):
    """Tokens far from zero come out too large.

    Cause: The variance stands in the place of the mean square.
    Cure: x.square().mean(-1): the mean is not taken off.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    variance = wide.var(-1, correction=0, keepdim=True)
    return scaled(wide, variance, gain, eps).to(x.dtype)


@REFERENCE.mistake
def sum_instead_of_mean(x, gain, eps):
    """The wider the model, the smaller the numbers.

    Cause: The squares are summed: the token is divided by its length.
    Cure: Their mean.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    square = wide.square().sum(-1, keepdim=True)
    return scaled(wide, square, gain, eps).to(x.dtype)


@REFERENCE.mistake
def no_root(x, gain, eps):
    """Loud tokens come out quiet, and quiet ones loud.

    Cause: It divides by the mean square itself.
    Cure: By its root; rsqrt, if you multiply.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    return (wide / (mean_square(wide) + eps) * gain).to(x.dtype)


@REFERENCE.mistake
def multiplied_by_the_root(x, gain, eps):
    """Loud tokens come out louder.

    Cause: sqrt where rsqrt was meant.
    Cure: Divide by the root, or multiply by rsqrt.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    return (wide * (mean_square(wide) + eps).sqrt() * gain).to(x.dtype)


@REFERENCE.mistake
def mean_of_absolute_values(x, gain, eps):
    """The numbers are too large.

    Cause: mean(|x|) stands in the place of √mean(x²).
    Cure: Square, mean, root.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    size = wide.abs().mean(-1, keepdim=True)
    return (wide / (size + eps) * gain).to(x.dtype)


@REFERENCE.mistake
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


@REFERENCE.mistake
def over_everything(x, gain, eps):
    """One loud token makes all others quiet.

    Cause: mean() without an axis.
    Cure: dim=-1, keepdim=True.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    return scaled(wide, wide.square().mean(), gain, eps).to(x.dtype)


@REFERENCE.mistake
def no_gain(x, gain, eps):
    """It cannot learn how loud a feature shall be.

    Cause: The parameter is made, and not used.
    Cure: Multiply by it.
    Chapter: layers
    """
    return normal(x, torch.ones_like(gain), eps)


@REFERENCE.mistake
def one_plus_the_gain(x, gain, eps):
    """Each number is larger by one normalised x.

    Cause: It multiplies by 1 + gain, as Gemma does, whose gains start at 0.
    Cure: Multiply by gain, which starts at 1.
    Chapter: layers
    """
    return normal(x, 1 + gain, eps)


@REFERENCE.mistake
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


@REFERENCE.mistake
def squares_in_float32(x, gain, eps):
    """In float64, only the first seven digits are right.

    Cause: The mean square is taken in float32, and all else in float64.
    Cure: Only half precision needs more digits; leave float64 as it is.
    Chapter: layers
    """
    wide = x.float() if x.element_size() < 4 else x
    root = torch.rsqrt(mean_square(x.float()) + eps)
    return ((wide * root).to(x.dtype) * gain).to(x.dtype)


@REFERENCE.mistake
def float32_returned(x, gain, eps):
    """bfloat16 goes in, float32 comes out.

    Cause: It is computed in float32, and left there.
    Cure: .to(x.dtype) at the end.
    Chapter: layers
    """
    return normal(x.float() if x.element_size() < 4 else x, gain, eps)


@REFERENCE.mistake
def changed_in_place(x, gain, eps):
    """The caller's x is another one afterwards.

    Cause: x /= … or x *= … writes into the input.
    Cure: x = x / …
    Chapter: layers
    """
    x *= 1 / (mean_square(x) + eps).sqrt()
    return x * gain


KIND = Kind(
    "rms-norm",
    asks=REFERENCE.asks,
    exercise=lambda thing, facts: norm_adapter.of_its_width(REFERENCE, facts),
    facts={
        **norm_adapter.FACTS,
        "precision": Fact(
            "in what it computes when x is float64",
            {
                "exact": "float64",
                "float32": "float32",
                "mixed": "float64, but for the squares",
            },
            tried=False,
        ),
    },
    look=norm_adapter.look,
    prepare=norm_adapter.prepare,
)
