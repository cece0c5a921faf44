"""The mistakes of the kind `layer-norm`, besides those of the exercise."""

from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.layers.layer_norm import LAYER_NORM


@mistake
def variance_squared(x, gain, shift, eps):
    """Loud tokens come out quiet, and quiet ones loud.

    Cause: The deviation is (var + eps) ** 2: the wrong exponent.
    Cure: (var + eps) ** 0.5.
    Chapter: layers
    Thread: https://github.com/131250208/TPlinker-joint-extraction/issues/37
    """
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, correction=0, keepdim=True)
    return (x - mean) / (var + eps) ** 2 * gain + shift


@mistake
def computed_in_float32(x, gain, shift, eps):
    """In float64, only the first seven digits are right.

    Cause: Everything is turned into float32, and back at the end.
    Cure: Only half precision needs more digits; leave float64 as it is.
    Chapter: layers
    """
    narrow = (t.float() for t in (x, gain, shift))
    return LAYER_NORM.solution(*narrow, eps).to(x.dtype)


@mistake
def one_plus_the_gain(x, gain, shift, eps):
    """Each number is larger by one normalised x.

    Cause: It multiplies by 1 + gain, as those do whose gains start at 0.
    Cure: Multiply by gain, which starts at 1.
    Chapter: layers
    """
    return LAYER_NORM.solution(x, 1 + gain, shift, eps)


MISTAKES = (
    *LAYER_NORM.mistakes,
    variance_squared,
    computed_in_float32,
)
DEVIATIONS = (one_plus_the_gain,)
CONVENTIONS = {"precision": {"exact": None, "float32": computed_in_float32}}
