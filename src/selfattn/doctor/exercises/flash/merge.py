"""`merged(a, L_a, b, L_b)`: two attentions over different keys, as one."""

import math

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe

PAIR = {"a": "heads n d", "L_a": "heads n", "b": "heads n d", "L_b": "heads n"}


def far_apart(inputs: Inputs) -> None:
    """One logarithm is beyond what an exponential can hold."""
    inputs["L_a"] = inputs["L_a"] + 300
    inputs["L_b"] = inputs["L_b"] + 301


def deep_down(inputs: Inputs) -> None:
    """Both exponentials would round to nothing."""
    inputs["L_a"] = inputs["L_a"] - 300
    inputs["L_b"] = inputs["L_b"] - 301


def one_saw_nothing(inputs: Inputs) -> None:
    """Some queries have no key in one of the two."""
    inputs["L_a"][0] = -math.inf
    inputs["a"][0] = 0
    inputs["L_b"][1:2] = -math.inf
    inputs["b"][1:2] = 0


def neither_saw_any(inputs: Inputs) -> None:
    """One query has no key at all."""
    for name in ("a", "b"):
        inputs[f"L_{name}"][0, 0] = -math.inf
        inputs[name][0, 0] = 0


def solution(a, L_a, b, L_b):
    """A softmax over the two logarithms."""
    top = torch.maximum(L_a, L_b)
    top = top.masked_fill(top == -math.inf, 0.0)
    in_a, in_b = (L_a - top).exp(), (L_b - top).exp()
    total = (in_a + in_b).masked_fill(in_a + in_b == 0, 1.0)
    return (in_a / total)[..., None] * a + (in_b / total)[..., None] * b


@mistake
def half_and_half(a, L_a, b, L_b):
    """Both count the same.

    Cause: The outputs were averaged, and what they divided by was ignored.
    Cure: The shares are exp(L_a) and exp(L_b) over their sum.
    """
    return (a + b) / 2


@mistake
def shares_exchanged(a, L_a, b, L_b):
    """Each counts by the other's total.

    Cause: The shares have changed places.
    Cure: `a` counts by exp(L_a).
    """
    share = torch.sigmoid(L_b - L_a).nan_to_num()[..., None]
    return share * a + (1 - share) * b


@mistake
def logarithms_as_shares(a, L_a, b, L_b):
    """The shares can be negative.

    Cause: L is the logarithm of the total, and was taken for the total.
    Cure: exp(L) first; or a sigmoid of the difference.
    """
    share = (L_a / (L_a + L_b))[..., None]
    return share * a + (1 - share) * b


@mistake
def only_added(a, L_a, b, L_b):
    """The result is too large: the shares do not sum to one.

    Cause: The two were added. Each is an average of its own already.
    Cure: Divide by exp(L_a) + exp(L_b).
    """
    return a + b


@mistake
def exponentials_as_they_are(a, L_a, b, L_b):
    """Large or very low logarithms give NaN.

    Cause: exp(L) overflows, or both round to zero.
    Cure: Subtract the larger one first, or take a sigmoid of the difference.
    """
    in_a, in_b = L_a.exp()[..., None], L_b.exp()[..., None]
    return (in_a * a + in_b * b) / (in_a + in_b)


@mistake
def sigmoid_alone(a, L_a, b, L_b):
    """A query that has no key in either gets NaN.

    Cause: The difference of two minus infinities is no number.
    Cure: Treat that query by itself: its output is zeros.
    """
    share = torch.sigmoid(L_a - L_b)[..., None]
    return share * a + (1 - share) * b


@mistake
def the_larger_takes_all(a, L_a, b, L_b):
    """Only one of the two is ever seen.

    Cause: The one with the larger total was taken, and the other dropped.
    Cure: Both count, by exp(L_a) and exp(L_b).
    """
    return torch.where((L_a > L_b)[..., None], a, b)


@mistake
def shares_over_the_queries(a, L_a, b, L_b):
    """The shares of a query depend on the other queries.

    Cause: The softmax runs along the queries, not over the two.
    Cure: Each query has two shares, which sum to one.
    """
    in_a, in_b = L_a.softmax(dim=-1), L_b.softmax(dim=-1)
    in_a, in_b = in_a.nan_to_num()[..., None], in_b.nan_to_num()[..., None]
    return in_a * a + in_b * b


MERGE = Exercise(
    "flash/merge",
    asks="(exp(L_a) a + exp(L_b) b) / (exp(L_a) + exp(L_b))",
    solution=solution,
    probes=(
        Probe("shares are those of the totals", PAIR, gradient=True),
        Probe("large logarithms do not overflow", PAIR, change=far_apart),
        Probe("low ones do not vanish", PAIR, change=deep_down),
        Probe("one may have seen nothing", PAIR, change=one_saw_nothing),
        Probe("both may have seen nothing", PAIR, change=neither_saw_any),
        Probe("float64 stays float64", PAIR, dtype=torch.float64),
    ),
    mistakes=(
        half_and_half,
        shares_exchanged,
        logarithms_as_shares,
        only_added,
        exponentials_as_they_are,
        sigmoid_alone,
        the_larger_takes_all,
        shares_over_the_queries,
    ),
)
