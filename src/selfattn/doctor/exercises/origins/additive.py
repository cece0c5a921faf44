"""`look_back(s, h, W_s, W_h, w)`: a look back with additive scores."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe

MATRICES = {"W_s": "d_s d", "W_h": "d_h d", "w": "d"}
ROWS = {"s": "n_q d_s", "h": "n_k d_h"} | MATRICES
BATCH = ROWS | {"s": "batch n_q d_s", "h": "batch n_k d_h"}
SIZES = {"d_s": 11, "d_h": 13, "d": 5}
ALIKE = dict.fromkeys(("n_q", "n_k", "d_s", "d_h", "d", "batch"), 5)


def pairs(s, h, W_s, W_h):
    """Every state that writes beside every state that was read."""
    return (s @ W_s)[..., :, None, :] + (h @ W_h)[..., None, :, :]


def look_back(s, h, W_s, W_h, w):
    """The solution."""
    return (pairs(s, h, W_s, W_h).tanh() @ w).softmax(dim=-1) @ h


@mistake
def no_tanh(s, h, W_s, W_h, w):
    """Every writing state gets the same average.

    Cause: The hidden layer does not bend. w·(W s + W h) is a sum of one
        number for s and one for h, and the softmax cancels that for s.
    Cure: tanh before w.
    """
    return (pairs(s, h, W_s, W_h) @ w).softmax(dim=-1) @ h


@mistake
def softmax_over_the_writers(s, h, W_s, W_h, w):
    """Your rows do not sum to one.

    Cause: The softmax runs over the states that write.
    Cure: Over those that were read, the last axis: dim=-1.
    """
    return (pairs(s, h, W_s, W_h).tanh() @ w).softmax(dim=-2) @ h


@mistake
def no_softmax(s, h, W_s, W_h, w):
    """Your weights do not sum to one, and some are negative.

    Cause: Scores were used as weights.
    Cure: A softmax over the states that were read.
    """
    return (pairs(s, h, W_s, W_h).tanh() @ w) @ h


@mistake
def only_what_was_read(s, h, W_s, W_h, w):
    """Every writing state gets the same average.

    Cause: The scores are made of h alone: s is not heard.
    Cure: s @ W_s + h @ W_h, for each pair.
    """
    scores = (h @ W_h).tanh() @ w
    weights = scores.softmax(dim=-1)[..., None, :]
    told = weights @ h
    return told.expand(*s.shape[:-1], h.shape[-1])


@mistake
def only_what_writes(s, h, W_s, W_h, w):
    """Exchange what was read, and your weights stay.

    Cause: The scores are made of s alone, so every state gets as much.
    Cure: s @ W_s + h @ W_h, for each pair.
    """
    scores = (s @ W_s).tanh() @ w
    same = scores[..., None].expand(*scores.shape, h.shape[-2])
    return same.softmax(dim=-1) @ h


@mistake
def softmax_of_the_hidden_layer(s, h, W_s, W_h, w):
    """The weights are not made by the scores.

    Cause: The softmax stands before w, over the hidden layer.
    Cure: First the score, one number a pair; then the softmax over h.
    """
    hidden = pairs(s, h, W_s, W_h).tanh().softmax(dim=-2)
    return (hidden @ w) @ h


@mistake
def divided_by_the_root(s, h, W_s, W_h, w):
    """Your weights are too flat.

    Cause: The scores are divided by a root of the width, as products are.
    Cure: Additive scores stand as they are: tanh bounds them already.
    """
    scores = pairs(s, h, W_s, W_h).tanh() @ w / w.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ h


@mistake
def the_best_alone(s, h, W_s, W_h, w):
    """Your weights are 0 and 1, and no gradient reaches the scores.

    Cause: The state with the best score was taken.
    Cure: A softmax, so that all have a share.
    """
    scores = pairs(s, h, W_s, W_h).tanh() @ w
    best = torch.nn.functional.one_hot(scores.argmax(-1), h.shape[-2])
    return best.to(h.dtype) @ h


LOOK_BACK = Exercise(
    "origins/look_back",
    asks="softmax(w · tanh(s W_s + h W_h)) h, a score for each pair",
    solution=look_back,
    probes=(
        Probe("a score for each pair", ROWS, SIZES, gradient=True),
        Probe("a batch goes through", BATCH, SIZES),
        Probe("which axis is which, when all sizes are alike", BATCH, ALIKE),
        Probe("one state was read", ROWS, SIZES | {"n_k": 1}),
        Probe("float64 stays float64", ROWS, SIZES, dtype=torch.float64),
    ),
    mistakes=(
        no_tanh,
        softmax_over_the_writers,
        no_softmax,
        only_what_was_read,
        only_what_writes,
        softmax_of_the_hidden_layer,
        divided_by_the_root,
        the_best_alone,
    ),
)
