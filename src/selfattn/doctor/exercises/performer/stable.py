"""`stable(log_q, log_k, v)`: features that may be too large for exp."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe

TEXT = {"log_q": "n_q m", "log_k": "n_k m", "v": "n_k d_v"}
SIZES = {"n_q": 3, "n_k": 5, "m": 7, "d_v": 2}


def large(inputs: Inputs) -> None:
    """Logarithms of which no exponential is a number."""
    inputs["log_q"] = inputs["log_q"] + 200
    inputs["log_k"] = inputs["log_k"] + 300


def low(inputs: Inputs) -> None:
    """Logarithms of which every exponential is zero."""
    inputs["log_q"] = inputs["log_q"] - 200
    inputs["log_k"] = inputs["log_k"] - 300


def one_long_query(inputs: Inputs) -> None:
    """The features of one query are far smaller than the others'."""
    inputs["log_q"] = inputs["log_q"].clone()
    inputs["log_q"][-1] -= 150


def solution(log_q, log_k, v):
    """Each query by its own largest; the keys by one that all share."""
    f_q = (log_q - log_q.amax(dim=-1, keepdim=True)).exp()
    f_k = (log_k - log_k.amax()).exp()
    return f_q @ (f_k.mT @ v) / (f_q @ f_k.sum(dim=0))[:, None]


@mistake
def each_key_by_its_own(log_q, log_k, v):
    """Keys count alike, whatever the size of their features.

    Cause: Each key's features were divided by their own largest. That is
        another number for each key, and does not cancel.
    Cure: One number for all keys: log_k.amax().
    """
    f_q = (log_q - log_q.amax(dim=-1, keepdim=True)).exp()
    f_k = (log_k - log_k.amax(dim=-1, keepdim=True)).exp()
    return f_q @ (f_k.mT @ v) / (f_q @ f_k.sum(dim=0))[:, None]


@mistake
def each_feature_by_its_own(log_q, log_k, v):
    """Directions count alike, whatever they give.

    Cause: Each feature was divided by its largest over all keys. That is
        another number for each direction, and does not cancel.
    Cure: One number for all keys and all features: log_k.amax().
    """
    f_q = (log_q - log_q.amax(dim=-1, keepdim=True)).exp()
    f_k = (log_k - log_k.amax(dim=0, keepdim=True)).exp()
    return f_q @ (f_k.mT @ v) / (f_q @ f_k.sum(dim=0))[:, None]


@mistake
def as_they_are(log_q, log_k, v):
    """It is right until an exponential is no number, or zero.

    Cause: exp of logarithms as they come.
    Cure: Take the largest off before exp; it cancels in the quotient.
    """
    f_q, f_k = log_q.exp(), log_k.exp()
    return f_q @ (f_k.mT @ v) / (f_q @ f_k.sum(dim=0))[:, None]


@mistake
def all_queries_by_one(log_q, log_k, v):
    """A query whose features are far smaller than another's is lost.

    Cause: One largest for all queries: beside it some are rounded to zero.
    Cure: Each query by its own: the division by the row's sum undoes it.
    """
    f_q = (log_q - log_q.amax()).exp()
    f_k = (log_k - log_k.amax()).exp()
    return f_q @ (f_k.mT @ v) / (f_q @ f_k.sum(dim=0))[:, None]


@mistake
def a_little_added(log_q, log_k, v):
    """It is drawn to the plain mean of the values.

    Cause: A small number was added to all features, so that none is zero.
        Beside small features it is no small number.
    Cure: Nothing need be added: the largest is one.
    """
    f_q = (log_q - log_q.amax(dim=-1, keepdim=True)).exp() + 0.01
    f_k = (log_k - log_k.amax()).exp() + 0.01
    return f_q @ (f_k.mT @ v) / (f_q @ f_k.sum(dim=0))[:, None]


@mistake
def not_divided(log_q, log_k, v):
    """What was taken off stays off: these are no averages.

    Cause: The sums were not divided by the sums of the weights.
    Cure: Divide by f_q · Σ f_k: there everything taken off cancels.
    """
    f_q = (log_q - log_q.amax(dim=-1, keepdim=True)).exp()
    f_k = (log_k - log_k.amax()).exp()
    return f_q @ (f_k.mT @ v)


@mistake
def features_that_sum_to_one(log_q, log_k, v):
    """Keys count alike, whatever the size of their features.

    Cause: A softmax over the features of each key divides each key by its
        own sum, which does not cancel.
    Cure: One number for all keys: log_k.amax().
    """
    f_q, f_k = log_q.softmax(dim=-1), log_k.softmax(dim=-1)
    return f_q @ (f_k.mT @ v) / (f_q @ f_k.sum(dim=0))[:, None]


@mistake
def divided_feature_by_feature(log_q, log_k, v):
    """Rows of weights do not sum to one.

    Cause: The sums of values were divided by those of the keys' features,
        each by itself, before a query came.
    Cure: Read both sums with the query, then divide once.
    """
    f_q = (log_q - log_q.amax(dim=-1, keepdim=True)).exp()
    f_k = (log_k - log_k.amax()).exp()
    return f_q @ ((f_k.mT @ v) / f_k.sum(dim=0)[:, None])


STABLE = Exercise(
    "performer/stable",
    asks="φ(Q) (φ(K)ᵀ V) over φ(Q) Σ φ(k), from logarithms of any size",
    solution=solution,
    probes=(
        Probe("it is the quotient of sums", TEXT, SIZES, gradient=True),
        Probe("large logarithms overflow nothing", TEXT, SIZES, change=large),
        Probe("low ones leave something", TEXT, SIZES, change=low),
        Probe("no query is lost", TEXT, SIZES, change=one_long_query),
        Probe("float64 stays float64", TEXT, SIZES, dtype=torch.float64),
    ),
    mistakes=(
        each_key_by_its_own,
        each_feature_by_its_own,
        as_they_are,
        all_queries_by_one,
        a_little_added,
        not_divided,
        features_that_sum_to_one,
        divided_feature_by_feature,
    ),
)
