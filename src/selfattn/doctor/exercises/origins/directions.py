"""`both_ends(last)`: one vector a sentence, of a reader in both directions."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe

LAST = {"last": "directions batch d"}
SIZES = {"directions": 2, "batch": 5, "d": 7}


def both_ends(last):
    """The solution."""
    return last.transpose(0, 1).flatten(1)


@mistake
def sentences_mixed(last):
    """One sentence's vector holds numbers of another.

    Cause: view or reshape cuts (2, batch, d) into rows of 2 d in the order in
        which the numbers lie, which is direction by direction.
    Cure: Bring the batch to the front first: last.transpose(0, 1).
    """
    return last.reshape(last.shape[1], -1)


@mistake
def features_mixed(last):
    """The two directions lie feature by feature, not one after the other.

    Cause: The batch came to the front by moving the features, too.
    Cure: last.transpose(0, 1), which keeps each direction together.
    """
    return last.permute(1, 2, 0).flatten(1)


@mistake
def backward_first(last):
    """The two directions are exchanged.

    Cause: PyTorch puts the forward direction first, at index 0.
    Cure: last[0] before last[1].
    """
    return torch.cat((last[1], last[0]), dim=-1)


@mistake
def forward_alone(last):
    """Half of your vector repeats the other.

    Cause: The backward direction is left out.
    Cure: last[0] and last[1], side by side.
    """
    return torch.cat((last[0], last[0]), dim=-1)


@mistake
def added(last):
    """Your vector is d wide, and should be 2 d.

    Cause: The two directions are added.
    Cure: Put them side by side.
    """
    return last.sum(dim=0)


@mistake
def averaged(last):
    """Your vector is the mean of the directions, d wide.

    Cause: The two directions are averaged.
    Cure: Put them side by side.
    """
    return last.mean(dim=0)


@mistake
def the_larger_of_both(last):
    """Of each feature you keep the larger of two that differ in meaning.

    Cause: The two directions are compared as if they were one thing.
    Cure: Put them side by side.
    """
    return last.amax(dim=0)


@mistake
def one_under_the_other(last):
    """You have twice as many rows as there are sentences.

    Cause: The directions were joined along the batch.
    Cure: Along the features, the last axis.
    """
    return last.flatten(0, 1)


BOTH_ENDS = Exercise(
    "origins/both_ends",
    asks="the forward and the backward state of each sentence, (batch, 2 d)",
    solution=both_ends,
    probes=(
        Probe("each sentence's own two states", LAST, SIZES, gradient=True),
        Probe("a batch of two", LAST, SIZES | {"batch": 2}),
        Probe("a batch of one", LAST, SIZES | {"batch": 1}),
        Probe("float64 stays float64", LAST, SIZES, dtype=torch.float64),
    ),
    mistakes=(
        sentences_mixed,
        features_mixed,
        backward_first,
        forward_alone,
        added,
        averaged,
        the_larger_of_both,
        one_under_the_other,
    ),
)
