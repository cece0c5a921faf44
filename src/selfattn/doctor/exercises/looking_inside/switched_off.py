"""`without(weights, v, W_o, head)`: a layer with one head switched off."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe

LAYER = {
    "weights": "heads n_q n_k",
    "v": "heads n_k d_v",
    "W_o": "heads d_v d",
    "head": lambda sizes: 1,
}
SIZES = {"d": 11, "d_v": 3}
ALIKE = dict.fromkeys(("heads", "n_q", "n_k", "d_v", "d"), 5)


def soft(inputs: Inputs) -> None:
    """Weights as a softmax gives them."""
    inputs["weights"] = inputs["weights"].softmax(dim=-1)


def first(inputs: Inputs) -> None:
    """The same, and the first head is the one."""
    soft(inputs)
    inputs["head"] = 0


def without(weights, v, W_o, head):
    """The solution."""
    added = weights @ v @ W_o
    return added.sum(dim=0) - added[head]


@mistake
def scores_are_zero(weights, v, W_o, head):
    """The head is still on: it looks at all keys alike.

    Cause: Its scores, queries or keys were set to zero. The softmax makes
        equal weights of that, which bring back the mean of the values.
    Cure: Zero what the head brings back, behind the softmax.
    """
    other = weights.clone()
    other[head] = 1 / weights.shape[-1]
    return (other @ v @ W_o).sum(dim=0)


@mistake
def only_that_head(weights, v, W_o, head):
    """All heads are off but this one.

    Cause: What the head adds was kept, and the rest dropped.
    Cure: The sum over the others.
    """
    return (weights @ v @ W_o)[head]


@mistake
def nothing_is_off(weights, v, W_o, head):
    """All heads still add.

    Cause: What was zeroed is not what the sum was made of.
    Cure: Leave the head out of the sum.
    """
    return (weights @ v @ W_o).sum(dim=0)


@mistake
def counted_from_one(weights, v, W_o, head):
    """Another head is off.

    Cause: head - 1, as if the first were 1.
    Cure: Heads count from 0 here.
    """
    added = weights @ v @ W_o
    return added.sum(dim=0) - added[head - 1]


@mistake
def mean_of_the_others(weights, v, W_o, head):
    """Heads add up; they are not averaged.

    Cause: The mean over the heads that are left.
    Cure: Their sum.
    """
    added = weights @ v @ W_o
    return (added.sum(dim=0) - added[head]) / (len(weights) - 1)


@mistake
def made_up_for(weights, v, W_o, head):
    """The others were made larger to make up for it.

    Cause: The rest was scaled by h / (h - 1), as dropout does.
    Cure: Change nothing else.
    """
    added = weights @ v @ W_o
    share = len(weights) / (len(weights) - 1)
    return share * (added.sum(dim=0) - added[head])


@mistake
def twice_off(weights, v, W_o, head):
    """The head is not off, but turned round.

    Cause: It was left out of the sum, and then subtracted.
    Cure: One of the two.
    """
    added = weights @ v @ W_o
    return added.sum(dim=0) - 2 * added[head]


@mistake
def values_of_the_mean(weights, v, W_o, head):
    """The head still adds something: what it adds on average.

    Cause: Its output was replaced by its mean over the queries. That is an
        ablation, too, and a milder one; it was not asked for.
    Cure: Zero.
    """
    added = weights @ v @ W_o
    usual = added[head].mean(dim=0, keepdim=True)
    return added.sum(dim=0) - added[head] + usual


WITHOUT = Exercise(
    "looking_inside/without",
    asks="the sum over the other heads of weights @ v @ W_o",
    solution=without,
    probes=(
        Probe(
            "the other heads add up",
            LAYER,
            SIZES,
            change=soft,
            fixed=("heads",),
            gradient=True,
        ),
        Probe(
            "the first head, too",
            LAYER,
            SIZES,
            change=first,
            fixed=("heads",),
        ),
        Probe(
            "which axis is which, when all are alike",
            LAYER,
            ALIKE,
            change=soft,
            fixed=("heads",),
        ),
        Probe(
            "float64 stays float64",
            LAYER,
            SIZES,
            change=soft,
            fixed=("heads",),
            dtype=torch.float64,
        ),
    ),
    mistakes=(
        scores_are_zero,
        only_that_head,
        nothing_is_off,
        counted_from_one,
        mean_of_the_others,
        made_up_for,
        twice_off,
        values_of_the_mean,
    ),
)
