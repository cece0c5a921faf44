"""The mistakes of the kind `causal-mask`, besides those of the exercise."""

import torch

from selfattn.doctor.deviations import hiding
from selfattn.doctor.exercise import mistake, mistake_as
from selfattn.doctor.exercises.masks.causal import (
    CAUSAL,
    first_on_first,
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


MISTAKES = (
    *CAUSAL.mistakes,
    everything_allowed,
    itself_alone,
)
CONVENTIONS = {"alignment": {"last": None, "first": first_on_first}}
