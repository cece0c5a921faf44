"""The mistakes of the kind `causal-mask`, besides those of the exercise."""

import torch

from selfattn.doctor.deviations import hiding
from selfattn.doctor.exercise import mistake, mistake_as
from selfattn.doctor.exercises.masks.causal import (
    CAUSAL,
    first_on_first,
    from_the_other_side,
    triangle,
)


@mistake
def everything_allowed(n_q, n_k):
    """Every query sees everything, the future, too.

    Cause: triu or tril was forgotten, or its result was thrown away.
    Cure: j <= i.
    Chapter: masks
    """
    return torch.ones(n_q, n_k, dtype=torch.bool)


@mistake_as(hiding.itself_alone)
def itself_alone(n_q, n_k):
    return triangle(n_q, n_k, n_k - n_q) & ~triangle(n_q, n_k, n_k - n_q - 1)


def after(n_q, n_k, by):
    """True for what comes so many keys after a query, or later."""
    return torch.ones(n_q, n_k, dtype=torch.bool).triu(n_k - n_q + by)


@mistake_as(from_the_other_side)
def all_but_the_next(n_q, n_k):
    return after(n_q, n_k, 2)


@mistake_as(from_the_other_side)
def the_past_of_a_cache_and_what_comes_after(n_q, n_k):
    return after(n_q, n_k, 2) | (torch.arange(n_k) < n_k - n_q)


MISTAKES = (
    *CAUSAL.mistakes,
    everything_allowed,
    itself_alone,
)
DEVIATIONS = (
    all_but_the_next,
    the_past_of_a_cache_and_what_comes_after,
)
CONVENTIONS = {"alignment": {"last": None, "first": first_on_first}}
