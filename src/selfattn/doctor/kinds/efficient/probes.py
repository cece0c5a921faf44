"""What is asked of a mechanism whose claim can be computed.

Most texts are so long that tiles do not fit.
"""

import torch

from selfattn.doctor.exercises.dot_product.attention import (
    QKV,
    QKV_BATCH,
    QKV_HEADS,
)
from selfattn.doctor.kinds.efficient.experiments import N, makes_no_table
from selfattn.doctor.kinds.efficient.needs import OF_A_CLAIM, with_needs
from selfattn.doctor.probes import Inputs, Probe, in_other_order, louder

# As many keys as queries, and values as wide as keys (d is 11 everywhere):
# many that save work take nothing else. A probe that has it otherwise needs
# "length" or "width", and an axis mistaken for another shows in those alone.
PAST_A_TILE = {"n_q": 131, "n_k": 131, "d_v": 11}  # and no multiple of one
WITHIN_A_TILE = {"n_q": 5, "n_k": 5, "d_v": 11}


def flag(sizes: object) -> bool:
    """The causal flag, up."""
    return True


def far_and_loud(inputs: Inputs) -> None:
    """Make the first keys so long that, seen, they would drown the others."""
    inputs["k"][..., :3, :] *= 100


CAUSAL = {**QKV_BATCH, "causal": flag}
ALL = (
    Probe("it is what it claims", QKV_BATCH, PAST_A_TILE, gradient=True),
    Probe("a short sequence is right, too", QKV_BATCH, WITHIN_A_TILE),
    Probe(
        "one token sees itself",
        QKV_BATCH,
        {**WITHIN_A_TILE, "n_q": 1, "n_k": 1},
    ),
    Probe(
        "a whole number of tiles",
        QKV_BATCH,
        {**PAST_A_TILE, "n_q": 128, "n_k": 128},
    ),
    Probe(
        "each head is for itself",
        QKV_HEADS,
        {**PAST_A_TILE, "n_q": 67, "n_k": 67},
    ),
    Probe(
        "the order in memory does not matter",
        QKV_BATCH,
        PAST_A_TILE,
        change=in_other_order,
    ),
    Probe(
        "values wider than keys",
        QKV_BATCH,
        {"n_q": 67, "n_k": 67},
        needs=("width",),
    ),
    Probe(
        "fewer queries than keys",
        QKV_BATCH,
        {**PAST_A_TILE, "n_q": 37},
        needs=("length",),
        convention="alignment",
    ),
    Probe("one sequence alone", QKV, PAST_A_TILE, needs=("single",)),
    Probe(
        "scores in the hundreds",
        QKV_BATCH,
        PAST_A_TILE,
        change=louder("q", "k", times=8.0),
        tolerance=0.01,
    ),
    Probe(
        "loud keys are heard where they may be",
        QKV_BATCH,
        PAST_A_TILE,
        change=far_and_loud,
        tolerance=0.01,
    ),
    Probe(
        "float64 is computed in float64",
        QKV_BATCH,
        PAST_A_TILE,
        dtype=torch.float64,
    ),
    Probe(
        "float16", QKV_BATCH, PAST_A_TILE, dtype=torch.float16, tolerance=0.03
    ),
    Probe(
        "bfloat16", QKV_BATCH, PAST_A_TILE, dtype=torch.bfloat16, tolerance=0.2
    ),
    Probe(
        "the causal flag hides later keys", CAUSAL, PAST_A_TILE, gradient=True
    ),
    Probe("and in a short sequence", CAUSAL, WITHIN_A_TILE),
    Probe(
        "causal, with fewer queries than keys",
        CAUSAL,
        {**PAST_A_TILE, "n_q": 37},
        needs=("length",),
        convention="alignment",
    ),
    Probe("causal in float64", CAUSAL, PAST_A_TILE, dtype=torch.float64),
    Probe(
        "no table of scores is made",
        QKV_BATCH,
        {"n_q": N, "n_k": N, "d": 8, "d_v": 8, "batch": 1},
        experiment=makes_no_table,
    ),
)


PROBES = with_needs(ALL, OF_A_CLAIM)
