"""What RMSNorm does otherwise at a step, by its names."""

from selfattn.doctor.deviations.design import Deviation
from selfattn.doctor.exercises.layers import layer_norm as names
from selfattn.doctor.kinds.norms import steps
from selfattn.doctor.kinds.norms.rms_norm import mistakes

NAMES = {
    "tokens": mistakes.over_the_tokens,
    "first": names.over_the_first_axis,
    "sequence": names.over_a_whole_sequence,
    "everything": mistakes.over_everything,
    "outside": mistakes.eps_outside_the_root,
    "none": mistakes.no_eps,
    "no root": mistakes.no_root,
    "times": mistakes.multiplied_by_the_root,
    "squared": mistakes.no_root,
    "sample": names.bessel,
    "sum": mistakes.sum_instead_of_mean,
    "sizes": mistakes.mean_of_absolute_values,
    "variance": mistakes.divided_by_the_deviation,
    "no gain": mistakes.no_gain,
    "one plus": mistakes.one_plus_the_gain,
}
KNOWN = (
    Deviation({"top": steps.centred}, mistakes.centred),
    Deviation(
        {"top": steps.centred, "spread": steps.variance}, mistakes.centred
    ),
    *steps.axes(NAMES),
    *steps.of_one_moment(steps.RMS, NAMES),
    *steps.cuts(steps.RMS),
    *steps.spreads(steps.RMS, NAMES),
    *steps.roots(NAMES),
    *steps.gains(NAMES),
    *steps.OTHER_EPS,
)
