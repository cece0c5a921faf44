"""`recurrence(f_q, f_k, v)`: causal linear attention, a token a step."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe

TEXT = {"f_q": "n d", "f_k": "n d", "v": "n d_v"}
SIZES = {"n": 5, "d": 3, "d_v": 2}


def positive(inputs: Inputs) -> None:
    """Features as a feature map makes them."""
    for name in ("f_q", "f_k"):
        inputs[name] = inputs[name].abs()


def far_key(inputs: Inputs) -> None:
    """One key is much larger than the others."""
    positive(inputs)
    inputs["f_k"][1:2] = inputs["f_k"][1:2] * 50


def solution(f_q, f_k, v):
    """Write, then read; and divide by what the weights sum to."""
    pairs, total, outputs = 0.0, 0.0, []
    for q, k, value in zip(f_q, f_k, v, strict=True):
        pairs = pairs + k[:, None] * value
        total = total + k
        outputs.append(q @ pairs / (q @ total))
    return torch.stack(outputs)


@mistake
def read_before_writing(f_q, f_k, v):
    """The first token gets no number, and no token sees itself.

    Cause: The memory is read before the token is written into it.
    Cure: Write first, then read: a causal mask has its diagonal.
    """
    pairs, total, outputs = f_k.new_zeros(f_k.shape[1], v.shape[1]), 0.0, []
    total = f_k.new_zeros(f_k.shape[1])
    for q, k, value in zip(f_q, f_k, v, strict=True):
        outputs.append(q @ pairs / (q @ total))
        pairs, total = pairs + k[:, None] * value, total + k
    return torch.stack(outputs)


@mistake
def not_divided(f_q, f_k, v):
    """The outputs grow along the text.

    Cause: What is read was not divided: these are sums, not averages.
    Cure: Keep the sum of the keys' features, too, and divide by q · total.
    """
    pairs, outputs = 0.0, []
    for q, k, value in zip(f_q, f_k, v, strict=True):
        pairs = pairs + k[:, None] * value
        outputs.append(q @ pairs)
    return torch.stack(outputs)


@mistake
def divided_within_the_memory(f_q, f_k, v):
    """Each feature is averaged by itself; the weights do not sum to one.

    Cause: The memory was divided by the keys' sum, feature by feature. A
        sum of fractions is not the fraction of the sums.
    Cure: Read first, then divide by one number: q · total.
    """
    pairs, total, outputs = 0.0, 0.0, []
    for q, k, value in zip(f_q, f_k, v, strict=True):
        pairs = pairs + k[:, None] * value
        total = total + k
        outputs.append(q @ (pairs / total[:, None]))
    return torch.stack(outputs)


@mistake
def divided_by_all(f_q, f_k, v):
    """Every row but the last is too small.

    Cause: The sum to divide by is that of all keys, the future's too.
    Cure: It grows token by token, as the memory does.
    """
    pairs, outputs = 0.0, []
    for q, k, value in zip(f_q, f_k, v, strict=True):
        pairs = pairs + k[:, None] * value
        outputs.append(q @ pairs / (q @ f_k.sum(dim=0)))
    return torch.stack(outputs)


@mistake
def divided_by_the_count(f_q, f_k, v):
    """The weights sum to whatever the features make.

    Cause: It was divided by how many tokens there are so far.
    Cure: Divide by what the weights sum to, q · total.
    """
    pairs, outputs = 0.0, []
    triples = zip(f_q, f_k, v, strict=True)
    for i, (q, k, value) in enumerate(triples):
        pairs = pairs + k[:, None] * value
        outputs.append(q @ pairs / (i + 1))
    return torch.stack(outputs)


@mistake
def all_at_once(f_q, f_k, v):
    """A token hears those after it.

    Cause: All keys were summed up before the first query asked.
    Cure: Query i reads the memory of the first i tokens and its own.
    """
    pairs, total = f_k.T @ v, f_k.sum(dim=0)
    return f_q @ pairs / (f_q @ total)[:, None]


@mistake
def replaced(f_q, f_k, v):
    """Every token outputs its own value.

    Cause: The memory was replaced by the new token, not added to.
    Cure: S grows: S + φ(k) vᵀ.
    """
    outputs = []
    for q, k, value in zip(f_q, f_k, v, strict=True):
        outputs.append(q @ (k[:, None] * value) / (q @ k))
    return torch.stack(outputs)


@mistake
def keys_ask(f_q, f_k, v):
    """The queries have no part in it.

    Cause: The memory was read with the key that wrote last.
    Cure: Read with the query.
    """
    pairs, total, outputs = 0.0, 0.0, []
    for k, value in zip(f_k, v, strict=True):
        pairs = pairs + k[:, None] * value
        total = total + k
        outputs.append(k @ pairs / (k @ total))
    return torch.stack(outputs)


RECURRENCE = Exercise(
    "linear/recurrence",
    asks="f_q S / (f_q · Z), with S and Z summed up to the token itself",
    solution=solution,
    probes=(
        Probe(
            "it is the causal quadratic form",
            TEXT,
            SIZES,
            change=positive,
            gradient=True,
        ),
        Probe("a large key counts as much", TEXT, SIZES, change=far_key),
        Probe(
            "one token is its own value",
            TEXT,
            {**SIZES, "n": 1},
            change=positive,
        ),
        Probe(
            "float64 stays float64",
            TEXT,
            SIZES,
            dtype=torch.float64,
            change=positive,
        ),
    ),
    mistakes=(
        read_before_writing,
        not_divided,
        divided_within_the_memory,
        divided_by_all,
        divided_by_the_count,
        all_at_once,
        replaced,
        keys_ask,
    ),
)
