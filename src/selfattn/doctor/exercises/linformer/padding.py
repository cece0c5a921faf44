"""`without_padding(q, k, v, E, length)`: the filling must not be felt."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe, Sizes

TEXT = {"q": "n_q d", "k": "n_k d", "v": "n_k d_v", "E": "m n_k"}
SIZES = {"n_q": 3, "n_k": 7, "m": 5, "d": 2, "d_v": 11}


def of_length(length: int):
    """How many tokens are real; of a shorter text, at most all."""

    def make(sizes: Sizes) -> int:
        return min(length, sizes["n_k"])

    return make


def attended(q, keys, values):
    """Attention, by hand."""
    scores = q @ keys.mT / q.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ values


def solution(q, k, v, E, length):
    """Mix only what is real: the first columns, the first tokens."""
    E = E[:, :length]
    return attended(q, E @ k[:length], E @ v[:length])


@mistake
def values_felt(q, k, v, E, length):
    """The filling is felt by way of its values.

    Cause: Keys of the filling are left out, its values are mixed in.
    Cure: Leave out both: E[:, :length] @ v[:length].
    """
    return attended(q, E[:, :length] @ k[:length], E @ v)


@mistake
def keys_felt(q, k, v, E, length):
    """The filling is felt by way of its keys.

    Cause: Values of the filling are left out, its keys are mixed in.
    Cure: Leave out both: E[:, :length] @ k[:length].
    """
    return attended(q, E @ k, E[:, :length] @ v[:length])


@mistake
def all_felt(q, k, v, E, length):
    """The filling is felt.

    Cause: The length is not looked at.
    Cure: Mix only the first `length` tokens, by the first columns of E.
    """
    return attended(q, E @ k, E @ v)


@mistake
def mixtures_hidden(q, k, v, E, length):
    """You hid mixtures, and not tokens.

    Cause: Of the k mixtures the first `length` were kept. Each of them holds
        something of every token.
    Cure: Leave out tokens, before they are mixed.
    """
    return attended(q, (E @ k)[:length], (E @ v)[:length])


@mistake
def last_columns(q, k, v, E, length):
    """A token is mixed as one that stands elsewhere.

    Cause: The last columns of E were taken for the first tokens.
    Cure: E[:, :length]: the column of a token is its place.
    """
    E = E[:, -length:]
    return attended(q, E @ k[:length], E @ v[:length])


@mistake
def averaged(q, k, v, E, length):
    """Your mixtures weigh more when the text is short.

    Cause: What is left of each row was scaled up, by n / length.
    Cure: Leave the weights as they were learned.
    """
    E = E[:, :length] * (E.shape[-1] / length)
    return attended(q, E @ k[:length], E @ v[:length])


@mistake
def one_too_many(q, k, v, E, length):
    """The first token of the filling is felt.

    Cause: The cut is one place too late: length counts tokens, the last of
        which is number length - 1.
    Cure: E[:, :length].
    """
    return solution(q, k, v, E, length + 1)


@mistake
def queries_cut(q, k, v, E, length):
    """Outputs of later queries are nothing.

    Cause: Queries beyond `length` were set to zero with the filling.
    Cure: Hide keys and values. Which outputs are used is for others to say.
    """
    output = solution(q, k, v, E, length).clone()
    output[length:] = 0
    return output


PADDING = Exercise(
    "linformer/padding",
    asks="attention to mixtures of the first tokens alone",
    solution=solution,
    probes=(
        Probe(
            "only the real tokens are mixed",
            {**TEXT, "length": of_length(3)},
            SIZES,
            gradient=True,
            fixed=("n_k",),
        ),
        Probe("nothing is filling", {**TEXT, "length": of_length(7)}, SIZES),
        Probe(
            "one token is real",
            {**TEXT, "length": of_length(1)},
            SIZES,
            fixed=("n_k",),
        ),
        Probe(
            "more queries than real tokens",
            {**TEXT, "length": of_length(2)},
            SIZES | {"n_q": 5},
            fixed=("n_k", "n_q"),
        ),
        Probe(
            "float64 stays float64",
            {**TEXT, "length": of_length(5)},
            SIZES,
            dtype=torch.float64,
            fixed=("n_k",),
        ),
    ),
    mistakes=(
        values_felt,
        keys_felt,
        all_felt,
        mixtures_hidden,
        last_columns,
        averaged,
        one_too_many,
        queries_cut,
    ),
)
