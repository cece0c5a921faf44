"""A prediction: the weights of “sat” when “the” is padding.

The numbers are the running example's, *the cat sat*.
"""

import math

import torch

from selfattn.doctor.exercise import mistaken_value, prediction

SCORES = torch.tensor([3.0, 4.0, 1.0]) / math.sqrt(2)
HIDDEN = torch.tensor([True, False, False])


@mistaken_value
def nothing_hidden():
    """“the” still gets a share.

    Cause: These are the weights without a mask.
    Cure: Share out between “cat” and “sat” alone.
    """
    return SCORES.softmax(dim=-1)


@mistaken_value
def wiped_out_afterwards():
    """These sum to less than one.

    Cause: The weight of “the” was set to zero after the softmax.
    Cure: Leave its exponential out of the sum, too.
    """
    return nothing_hidden.answer.masked_fill(HIDDEN, 0.0)


@mistaken_value
def score_set_to_zero():
    """“the” still gets a share.

    Cause: Its score was set to 0, and the exponential of 0 is 1.
    Cure: Its exponential has to be 0.
    """
    return SCORES.masked_fill(HIDDEN, 0.0).softmax(dim=-1)


@mistaken_value
def no_scale():
    """“cat” gets too much.

    Cause: The scores were not divided by √2.
    Cure: Softmax of (4, 1) / √2.
    """
    return (SCORES * math.sqrt(2)).masked_fill(HIDDEN, -math.inf).softmax(-1)


@mistaken_value
def scaled_by_2():
    """“cat” gets too little.

    Cause: The scores were divided by d = 2, not by its square root.
    Cure: Softmax of (4, 1) / √2.
    """
    return (SCORES / math.sqrt(2)).masked_fill(HIDDEN, -math.inf).softmax(-1)


@mistaken_value
def itself_hidden():
    """“sat” may look at itself; here it does not.

    Cause: The wrong key is hidden.
    Cure: The keys are the, cat and sat; the padding is the first.
    """
    return SCORES.masked_fill(HIDDEN.roll(-1), -math.inf).softmax(dim=-1)


@mistaken_value
def another_hidden():
    """“cat” may be seen; here it is not, and “the”, which is padding, is.

    Cause: The wrong key is hidden.
    Cure: The keys are the, cat and sat; the padding is the first.
    """
    return SCORES.masked_fill(HIDDEN.roll(1), -math.inf).softmax(dim=-1)


@mistaken_value
def its_share_dealt_out():
    """“sat” itself gets too much.

    Cause: What “the” had was dealt out to the others in equal parts.
    Cure: Leave its exponential out of the sum: each of the others then
        grows by the same factor.
    """
    plain = SCORES.softmax(dim=-1)
    return (plain + plain[0] / 2).masked_fill(HIDDEN, 0.0)


@mistaken_value
def all_to_the_largest():
    """“cat” gets all, and “sat” nothing.

    Cause: The largest score was chosen.
    Cure: A softmax shares: the exponential of 1/√2 is not 0.
    """
    return torch.tensor([0.0, 1.0, 0.0])


@mistaken_value
def scores_shared_without_exponential():
    """“sat” itself gets too much.

    Cause: The scores were divided by their sum, 4 and 1 by 5.
    Cure: Divide them by √2 and take their exponentials first.
    """
    return torch.tensor([0.0, 0.8, 0.2])


@mistaken_value
def shared_equally():
    """Both allowed keys get the same, and their scores differ.

    Cause: The mask was taken for the weights.
    Cure: The mask says who shares; the scores say how much.
    """
    return torch.tensor([0.0, 0.5, 0.5])


PADDED_ROW = prediction(
    "masks/padded_row",
    asks="the weights of “sat” when “the” is padding",
    solution=SCORES.masked_fill(HIDDEN, -math.inf).softmax(dim=-1),
    mistakes=(
        nothing_hidden,
        wiped_out_afterwards,
        score_set_to_zero,
        no_scale,
        scaled_by_2,
        itself_hidden,
        scores_shared_without_exponential,
        shared_equally,
        another_hidden,
        its_share_dealt_out,
        all_to_the_largest,
    ),
)
