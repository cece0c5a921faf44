"""The mistakes of the kind `softmax`, besides those of the exercise."""

import torch

from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.dot_product.softmax import SOFTMAX


@mistake
def empty_row_gives_zeros(scores):
    """A row in which all is forbidden has weights that are all 0.

    Cause: NaN was wiped out, or the sum is kept from being 0.
    Cure: In attention that is what one wants; of softmax it is not asked.
    Chapter: masks
    """
    return scores.softmax(dim=-1).nan_to_num(0.0)


@mistake
def empty_row_gives_the_average(scores):
    """A row in which all is forbidden has weights that are all alike.

    Cause: -inf is replaced by a large negative number first.
    Cure: Leave -inf as it is; exp(-inf) is 0.
    Chapter: masks
    """
    return scores.clamp(min=torch.finfo(scores.dtype).min).softmax(dim=-1)


@mistake
def maximum_or_zero(scores):
    """Scores that are all far below 0 give NaN.

    Cause: What is subtracted is the row's maximum or 0, whichever is larger.
    Cure: Subtract the maximum itself, even if it is negative.
    Chapter: dot_product
    Thread: https://github.com/FluxML/NNlib.jl/pull/43
    """
    powers = (scores - scores.amax(-1, keepdim=True).clamp(min=0)).exp()
    return powers / powers.sum(-1, keepdim=True)


@mistake
def scores_taken_from_the_maximum(scores):
    """The smallest score has the largest weight.

    Cause: The scores are subtracted from the maximum, instead of the maximum
        from the scores.
    Cure: scores - maximum.
    Chapter: dot_product
    Thread: https://github.com/CASIA-IVA-Lab/DANet/issues/48
    """
    return (scores.amax(-1, keepdim=True) - scores).softmax(dim=-1)


@mistake
def over_the_first_axis(scores):
    """Right for a single vector; in a table, columns sum to one.

    Cause: softmax over dim=0.
    Cure: dim=-1: the keys of one query share its attention.
    Chapter: dot_product
    Thread: https://github.com/PetrochukM/PyTorch-NLP/issues/2
    """
    return scores.softmax(dim=0)


@mistake
def computed_in_half_precision(scores):
    """The weights are right to two digits.

    Cause: The scores are turned into half precision, and back.
    Cure: Softmax in float32 or in the type of the scores.
    Chapter: dot_product
    """
    return scores.bfloat16().softmax(dim=-1).to(scores.dtype)


MISTAKES = (
    *SOFTMAX.mistakes,
    empty_row_gives_zeros,
    empty_row_gives_the_average,
    maximum_or_zero,
    scores_taken_from_the_maximum,
    over_the_first_axis,
    computed_in_half_precision,
)
CONVENTIONS = {
    "empty_row": {
        "nan": None,
        "zeros": empty_row_gives_zeros,
        "average": empty_row_gives_the_average,
    }
}
