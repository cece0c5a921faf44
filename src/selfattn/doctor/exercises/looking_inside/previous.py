"""`previous_token_score(weights)`: how much each head looks one token back."""

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe

ONE = {"weights": "heads n n"}
BATCH = {"weights": "batch heads n n"}


def previous_token_score(weights):
    """The solution."""
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(dim=-1)


@mistake
def next_token(weights):
    """You measure who is looked at by the token before it.

    Cause: The diagonal above the main one: there the key comes after the
        query. Under a causal mask it is zero.
    Cure: The row is the query: offset=-1, below the main diagonal.
    """
    return weights.diagonal(offset=1, dim1=-2, dim2=-1).mean(dim=-1)


@mistake
def own_token(weights):
    """You measure how much each token looks at itself.

    Cause: The main diagonal.
    Cure: One below it: offset=-1.
    """
    return weights.diagonal(dim1=-2, dim2=-1).mean(dim=-1)


@mistake
def first_query_counted(weights):
    """Too small, and the more so the shorter the text.

    Cause: The sum is divided by all n queries; the first has no token before
        it.
    Cure: Divide by n - 1.
    """
    below = weights.diagonal(offset=-1, dim1=-2, dim2=-1)
    return below.sum(dim=-1) / weights.shape[-1]


@mistake
def two_back(weights):
    """You look two tokens back.

    Cause: offset=-2.
    Cure: offset=-1.
    """
    return weights.diagonal(offset=-2, dim1=-2, dim2=-1).mean(dim=-1)


@mistake
def heads_averaged(weights):
    """One number for all heads: a head that does this and seven that do not
    look like none.

    Cause: The mean runs over the heads as well.
    Cure: One score a head: mean over the queries alone, dim=-1.
    """
    below = weights.diagonal(offset=-1, dim1=-2, dim2=-1)
    return below.mean(dim=(-2, -1))


@mistake
def all_before(weights):
    """You count every earlier token.

    Cause: The whole triangle below the diagonal was summed.
    Cure: Only the key one place before the query.
    """
    return weights.tril(-1).sum(dim=(-2, -1)) / (weights.shape[-1] - 1)


@mistake
def largest(weights):
    """The best query is not the head.

    Cause: The largest weight was taken, not the mean over the queries.
    Cure: .mean(dim=-1).
    """
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).amax(dim=-1)


@mistake
def sum_of_queries(weights):
    """The longer the text, the larger your score.

    Cause: The weights are summed over the queries.
    Cure: Their mean, so that texts of other lengths can be compared.
    """
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).sum(dim=-1)


PREVIOUS = Exercise(
    "looking_inside/previous",
    asks="the mean of weights[..., i, i - 1] over the queries that have one",
    solution=previous_token_score,
    probes=(
        Probe("each head has a score", ONE, fixed=("n",)),
        Probe("a batch goes through", BATCH, fixed=("n",)),
        Probe("two tokens have one pair", ONE, {"n": 2}, fixed=("n",)),
        Probe("longer texts, too", BATCH, {"n": 17}, fixed=("n",)),
    ),
    mistakes=(
        next_token,
        own_token,
        first_query_counted,
        two_back,
        heads_averaged,
        all_before,
        largest,
        sum_of_queries,
    ),
)
