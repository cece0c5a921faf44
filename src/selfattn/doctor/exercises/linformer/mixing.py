"""`mixed(q, k, v, E, F)`: attention to mixtures of the keys."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe

TEXT = {
    "q": "n_q d",
    "k": "n_k d",
    "v": "n_k d_v",
    "E": "m n_k",
    "F": "m n_k",
}
SIZES = {"n_q": 5, "n_k": 7, "m": 3, "d": 2, "d_v": 11}


def all_of_one(inputs: Inputs) -> None:
    """E takes every token once, from the last to the first."""
    inputs["E"] = inputs["E"].new_zeros(inputs["E"].shape)
    inputs["E"].fill_diagonal_(1)
    inputs["E"] = inputs["E"].flip(0)
    inputs["F"] = inputs["E"].clone()


def solution(q, k, v, E, F):
    """Mix along the length, and attend to what came out."""
    scores = q @ (E @ k).mT / q.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ (F @ v)


@mistake
def one_mixing_for_both(q, k, v, E, F):
    """Your values are mixed as the keys.

    Cause: E stands in both places.
    Cure: Keys are mixed by E and values by F.
    """
    return solution(q, k, v, E, E)


@mistake
def exchanged(q, k, v, E, F):
    """Your mixings are exchanged.

    Cause: F mixes the keys, E the values.
    Cure: E K and F V.
    """
    return solution(q, k, v, F, E)


@mistake
def softmax_before_the_mixing(q, k, v, E, F):
    """You mixed the weights, not the keys.

    Cause: Softmax ran over all keys, and its weights were mixed: the table
        of all pairs, which there was not to be.
    Cure: Mix the keys first: softmax over q (E k)ᵀ.
    """
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return weights @ E.mT @ (F @ v)


@mistake
def no_scale(q, k, v, E, F):
    """Your weights are too sharp.

    Cause: The scores are not divided by √d.
    Cure: scores / √d, as everywhere.
    """
    return (q @ (E @ k).mT).softmax(dim=-1) @ (F @ v)


@mistake
def scaled_by_mixtures(q, k, v, E, F):
    """The scores are divided by the root of how many mixtures there are.

    Cause: The letter k of the paper is a number of mixtures; the scale is of
        features.
    Cure: scores / √d.
    """
    scores = q @ (E @ k).mT / len(E) ** 0.5
    return scores.softmax(dim=-1) @ (F @ v)


@mistake
def rows_brought_to_one(q, k, v, E, F):
    """Your mixtures are averages.

    Cause: The rows of E and F were divided by their sums.
    Cure: A learned mixture may weigh its tokens in any way.
    """
    E, F = (x / x.sum(dim=-1, keepdim=True) for x in (E, F))
    return solution(q, k, v, E, F)


@mistake
def divided_by_tokens(q, k, v, E, F):
    """Your mixtures are too small.

    Cause: They were divided by the number of tokens, as means are.
    Cure: E and F bring their own weights.
    """
    n = k.shape[0]
    return solution(q, k, v, E / n, F / n)


@mistake
def over_queries(q, k, v, E, F):
    """The weights of a query do not sum to one.

    Cause: Softmax ran over the queries.
    Cure: dim=-1: over the mixtures.
    """
    scores = q @ (E @ k).mT / q.shape[-1] ** 0.5
    return scores.softmax(dim=0) @ (F @ v)


MIXING = Exercise(
    "linformer/mixing",
    asks="attention to mixtures: keys by E, values by F",
    solution=solution,
    probes=(
        Probe("it is equation 7", TEXT, SIZES, gradient=True),
        Probe("few tokens, many mixtures", TEXT, SIZES | {"n_k": 3, "m": 7}),
        Probe(
            "each mixture one token is attention",
            TEXT,
            SIZES | {"n_k": 5, "m": 5},
            change=all_of_one,
            fixed=("n_k", "m"),
        ),
        Probe("one query", TEXT, SIZES | {"n_q": 1}),
        Probe("one mixture", TEXT, SIZES | {"m": 1}),
        Probe(
            "float64 stays float64",
            TEXT,
            SIZES,
            dtype=torch.float64,
        ),
    ),
    mistakes=(
        one_mixing_for_both,
        exchanged,
        softmax_before_the_mixing,
        no_scale,
        scaled_by_mixtures,
        rows_brought_to_one,
        divided_by_tokens,
        over_queries,
    ),
)
