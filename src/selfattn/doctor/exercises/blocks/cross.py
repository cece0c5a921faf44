"""`look_across(y, memory, W_q, W_k, W_v)`: one head of cross-attention."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe
from selfattn.dot_product import attention

WEIGHTS = {"W_q": "d d_k", "W_k": "d_m d_k", "W_v": "d_m d_v"}
ROWS = {"y": "n_q d", "memory": "n_k d_m"} | WEIGHTS
BATCH = ROWS | {"y": "batch n_q d", "memory": "batch n_k d_m"}
SIZES = {"d": 11, "d_m": 13, "d_k": 3, "d_v": 17}
ALIKE = dict.fromkeys(("n_q", "n_k", "d", "d_m", "d_k", "d_v", "batch"), 5)


def soft(inputs: Inputs) -> None:
    """Small queries and keys, so that no weight is nearly one."""
    inputs["W_q"] /= 4
    inputs["W_k"] /= 4


def look_across(y, memory, W_q, W_k, W_v):
    """The solution."""
    return attention(y @ W_q, memory @ W_k, memory @ W_v)


@mistake
def the_memory_asks(y, memory, W_q, W_k, W_v):
    """There is a row for each token of the memory, not of the target.

    Cause: Queries are made of the memory, keys and values of the target.
    Cure: Whoever wants to know makes the query: y @ W_q.
    """
    return attention(memory @ W_q, y @ W_k, y @ W_v)


@mistake
def values_of_the_target(y, memory, W_q, W_k, W_v):
    """The weights are right, and nothing of the memory comes out.

    Cause: The values are made of y.
    Cure: Keys and values come from one place: memory @ W_v.
    """
    return attention(y @ W_q, memory @ W_k, y @ W_v)


@mistake
def keys_of_the_target(y, memory, W_q, W_k, W_v):
    """The weights do not know what is in the memory.

    Cause: The keys are made of y.
    Cure: memory @ W_k.
    """
    return attention(y @ W_q, y @ W_k, memory @ W_v)


@mistake
def self_attention(y, memory, W_q, W_k, W_v):
    """Exchange the memory, and your output stays.

    Cause: Queries, keys and values are all made of y.
    Cure: Keys and values of the memory.
    """
    return attention(y @ W_q, y @ W_k, y @ W_v)


@mistake
def causal(y, memory, W_q, W_k, W_v):
    """The first target tokens do not hear all of the memory.

    Cause: The causal mask is on. Positions in the target are no positions in
        the source: all of the source is there from the start.
    Cure: No causal mask in cross-attention.
    """
    q, k, v = y @ W_q, memory @ W_k, memory @ W_v
    return attention(q, k, v, causal=True)


@mistake
def softmax_over_the_target(y, memory, W_q, W_k, W_v):
    """Your rows do not sum to one.

    Cause: The softmax runs over the queries.
    Cure: Over the keys, which are the memory: dim=-1.
    """
    scores = (y @ W_q) @ (memory @ W_k).mT / W_q.shape[-1] ** 0.5
    return scores.softmax(dim=-2) @ (memory @ W_v)


@mistake
def no_scale(y, memory, W_q, W_k, W_v):
    """Your weights are too sharp.

    Cause: The scores are not divided by √d_k.
    Cure: Divide, as in self-attention.
    """
    scores = (y @ W_q) @ (memory @ W_k).mT
    return scores.softmax(dim=-1) @ (memory @ W_v)


@mistake
def memory_averaged(y, memory, W_q, W_k, W_v):
    """Every target token is told the same.

    Cause: The memory is averaged before it is asked: the bottleneck that
        attention was invented to remove.
    Cure: Weights of its own for each query.
    """
    told = (memory @ W_v).mean(-2, keepdim=True)
    return told.expand(*y.shape[:-1], W_v.shape[-1])


CROSS = Exercise(
    "blocks/cross",
    asks="softmax((y W_q)(memory W_k)ᵀ / √d_k) (memory W_v)",
    solution=look_across,
    probes=(
        Probe(
            "the target asks, the memory is asked",
            ROWS,
            SIZES,
            change=soft,
            gradient=True,
        ),
        Probe("a batch goes through", BATCH, SIZES, change=soft),
        Probe(
            "who asks whom, when all sizes are alike",
            BATCH,
            ALIKE,
            change=soft,
        ),
        Probe(
            "a memory of one token is told to every query",
            ROWS,
            SIZES | {"n_k": 1},
            change=soft,
        ),
        Probe(
            "float64 stays float64",
            ROWS,
            SIZES,
            change=soft,
            dtype=torch.float64,
        ),
    ),
    mistakes=(
        the_memory_asks,
        values_of_the_target,
        keys_of_the_target,
        self_attention,
        causal,
        softmax_over_the_target,
        no_scale,
        memory_averaged,
    ),
)
