"""The mistakes of the kind `sinusoidal`, besides those of the exercise."""

import math

import torch
from torch import Tensor

from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.positions import sinusoidal as tables


def waves(angle: Tensor) -> Tensor:
    """Sines of the even features' angles, cosines of the odd ones'."""
    even = torch.arange(angle.shape[-1]) % 2 == 0
    return torch.where(even, angle.sin(), angle.cos()).float()


def numbered(n: int, d_model: int) -> tuple[Tensor, Tensor]:
    """Positions as a column, and 2i of each feature as a row."""
    f = torch.arange(d_model, dtype=torch.float64)
    return torch.arange(n, dtype=torch.float64)[:, None], 2 * (f // 2)


@mistake
def exponent_and_base_exchanged(n, d_model):
    """All features but the first turn at almost the same speed.

    Cause: The exponent is raised to a power, f ** 1e-4, instead of the base
        to that of the exponent.
    Cure: 10000 ** (-2i / d).
    Chapter: positions
    Thread: https://github.com/ivanvovk/WaveGrad/issues/12
    """
    p, two_i = numbered(n, d_model)
    return waves(p * (two_i / d_model) ** 1e-4)


@mistake
def divided_before_it_is_halved(n, d_model):
    """Each pair turns at e⁻² of the speed of the last: most stand still.

    Cause: -log(10000) / d // 2 is a whole number, such as -1, for // comes
        last.
    Cure: -log(10000) / d, or / (d // 2), with the brackets.
    Chapter: positions
    Thread: https://github.com/zju3dv/LoFTR/issues/41
    """
    p, two_i = numbered(n, d_model)
    step = -math.log(10_000.0) / max(d_model, 2) // 2
    return waves(p * (two_i * step).exp())


@mistake
def cosines_one_step_on(n, d_model):
    """Sine and cosine of a pair turn at different speeds.

    Cause: The sine's exponent is 2f / d and the cosine's 2 (f + 1) / d, of
        features f = 0, 2, 4, …
    Cure: Both have the exponent f / d of the even feature.
    Chapter: positions
    Thread: https://github.com/SamLynnEvans/Transformer/issues/25
    """
    p, two_i = numbered(n, d_model)
    odd = torch.arange(d_model) % 2
    return waves(p * 10_000.0 ** (-2 * (two_i + odd) / d_model))


@mistake
def sines_alone(n, d_model):
    """Odd features are sines, too: a pair says the same twice.

    Cause: sin in both places, so that position 0 is all zeros.
    Cure: Even features are sines, odd ones cosines.
    Chapter: positions
    """
    p, two_i = numbered(n, d_model)
    return (p * 10_000.0 ** (-two_i / d_model)).sin().float()


@mistake
def cosines_alone(n, d_model):
    """Even features are cosines, too: a pair says the same twice.

    Cause: cos in both places, so that position 0 is all ones.
    Cure: Even features are sines, odd ones cosines.
    Chapter: positions
    """
    p, two_i = numbered(n, d_model)
    return (p * 10_000.0 ** (-two_i / d_model)).cos().float()


@mistake
def degrees(n, d_model):
    """Even the fastest feature turns slowly.

    Cause: The angles are taken for degrees.
    Cure: Radians.
    Chapter: positions
    """
    p, two_i = numbered(n, d_model)
    return waves(torch.deg2rad(p * 10_000.0 ** (-two_i / d_model)))


@mistake
def position_divided_as_a_whole_number(n, d_model):
    """All pairs turn alike, as fast as the first.

    Cause: The exponent is divided as whole numbers, 2i // d, which is 0.
    Cure: 2i / d.
    Chapter: positions
    Thread: https://github.com/Kyubyong/transformer/pull/81
    """
    p, two_i = numbered(n, d_model)
    return waves(p * 10_000.0 ** -(two_i // d_model))


DEVIATIONS = (sines_alone, cosines_alone)
# The same tables have names of their own here and in `steps`.
OTHERWISE_NAMED = {
    tables.exponent_doubled,
    tables.one_speed_for_all,
    tables.in_degrees,
}
MISTAKES = (
    *(x for x in tables.MISTAKES if x not in OTHERWISE_NAMED),
    exponent_and_base_exchanged,
    divided_before_it_is_halved,
    cosines_one_step_on,
    degrees,
    position_divided_as_a_whole_number,
)
