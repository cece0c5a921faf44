"""A prediction: what is remembered of a row after two of its keys."""

import math

from selfattn.doctor.exercise import mistaken_value, prediction

THE, CAT, SAT = math.sqrt(2), 0.0, math.sqrt(2)  # scaled scores of *cat*


@mistaken_value
def all_three_keys():
    """The total is too large by one key.

    Cause: *Sat* is in it, which has not been read yet.
    Cure: Stop after *cat*: 1 and e^-1.414.
    """
    return [THE, 1 + math.exp(CAT - THE) + 1]


@mistaken_value
def nothing_subtracted():
    """The maximum is right, but the total is not measured against it.

    Cause: The exponentials are of the scores themselves.
    Cure: Subtract m from both first.
    """
    return [THE, math.exp(THE) + math.exp(CAT)]


@mistaken_value
def the_last_score():
    """The maximum went down.

    Cause: It was replaced by the score that came last. A maximum stays when
        something smaller comes.
    Cure: m is 1.414 after both keys.
    """
    return [CAT, math.exp(THE) + math.exp(CAT)]


@mistaken_value
def shrunk_needlessly():
    """The total is too small.

    Cause: What *the* had brought was shrunk, though *cat* scores less.
    Cure: Shrink by e^(m - m'), which is 1 when the maximum stays.
    """
    return [THE, 2 * math.exp(CAT - THE)]


@mistaken_value
def normalised():
    """The total is 1: these are weights.

    Cause: They were divided by their sum. That comes at the very end, and
        once.
    Cure: ℓ is the sum itself, 1 + e^-1.414.
    """
    return [THE, 1.0]


@mistaken_value
def scores_not_scaled():
    """Both numbers belong to the scores before the division by √2.

    Cause: 2 and 0 were taken, where 1.414 and 0 are given.
    Cure: Take the scaled scores.
    """
    return [2.0, 1 + math.exp(-2.0)]


@mistaken_value
def the_other_way_round():
    """The numbers are right and have changed places.

    Cause: The total stands first.
    Cure: m first, ℓ second.
    """
    return [1 + math.exp(CAT - THE), THE]


AFTER_TWO = prediction(
    "flash/after_two",
    asks="m and ℓ of the row of *cat* after two keys",
    solution=[THE, 1 + math.exp(CAT - THE)],
    mistakes=(
        all_three_keys,
        nothing_subtracted,
        the_last_score,
        shrunk_needlessly,
        normalised,
        scores_not_scaled,
        the_other_way_round,
    ),
)
