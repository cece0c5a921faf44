"""What LayerNorm does otherwise at a step, by its names."""

from selfattn.doctor.deviations.design import Deviation, unchanged
from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.layers import layer_norm as names
from selfattn.doctor.kinds.norms import steps
from selfattn.doctor.kinds.norms.layer_norm import mistakes
from selfattn.doctor.kinds.norms.rms_norm.mistakes import (
    sum_instead_of_mean,
)


@mistake
def multiplied_by_the_root():
    """Loud tokens come out louder.

    Cause: It multiplies by sqrt where rsqrt was meant.
    Cure: Divide by the root, or multiply by rsqrt.
    Chapter: layers
    """


@mistake
def mean_of_absolute_values():
    """The numbers are too large.

    Cause: mean(|x - mean|) stands in the place of the deviation.
    Cure: Square, mean, root.
    Chapter: layers
    """


NAMES = {
    "tokens": names.over_the_tokens,
    "first": names.over_the_first_axis,
    "sequence": names.over_a_whole_sequence,
    "everything": names.over_everything,
    "outside": names.eps_outside_the_root,
    "none": names.no_eps,
    "no root": names.divided_by_the_variance,
    "times": multiplied_by_the_root,
    "squared": mistakes.variance_squared,
    "sample": names.bessel,
    "sum": sum_instead_of_mean,
    "sizes": mean_of_absolute_values,
    "mean square": steps.mean_left_in_the_variance,
    "no gain": names.no_gain,
    "one plus": mistakes.one_plus_the_gain,
    "no shift": names.no_shift,
    "before": names.shifted_before_the_gain,
}
KNOWN = (
    Deviation({"top": unchanged}, names.not_centred),
    Deviation(
        {"top": unchanged, "spread": steps.mean_square},
        names.root_mean_square,
    ),
    *steps.axes(NAMES),
    *steps.of_one_moment(steps.LAYER, NAMES),
    *steps.cuts(steps.LAYER),
    *steps.spreads(steps.LAYER, NAMES),
    *steps.roots(NAMES),
    *steps.gains(NAMES),
    *steps.OTHER_EPS,
)
