"""The probes of the kind `efficient`: long enough that tiles do not fit."""

import dataclasses

import torch

from selfattn.doctor.exercises.dot_product.attention import (
    QKV,
    QKV_BATCH,
    QKV_HEADS,
)
from selfattn.doctor.kinds.efficient.experiments import N, makes_no_table
from selfattn.doctor.probes import Inputs, Probe, in_other_order, louder

OPTIONAL = {
    "causal": "a causal flag",
    "length": "another number of keys than of queries",
    "width": "values of another width than keys",
    "single": "one sequence without a batch",
    "heads": "axes for batch and heads",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float64": "float64",
}
LONG = {"n_q": 131, "n_k": 131, "d_v": 11}  # no multiple of 2, 3, … 128
SHORT = {"n_q": 5, "n_k": 5, "d_v": 11}


def flag(sizes: object) -> bool:
    """The causal flag, up."""
    return True


def far_and_loud(inputs: Inputs) -> None:
    """Make the first keys so long that, seen, they would drown the others."""
    inputs["k"][..., :3, :] *= 100


CAUSAL = {**QKV_BATCH, "causal": flag}
ALL = (
    Probe("it is what it claims", QKV_BATCH, LONG, gradient=True),
    Probe("a short sequence is right, too", QKV_BATCH, SHORT),
    Probe("one token sees itself", QKV_BATCH, {**SHORT, "n_q": 1, "n_k": 1}),
    Probe(
        "a whole number of tiles",
        QKV_BATCH,
        {**LONG, "n_q": 128, "n_k": 128},
    ),
    Probe(
        "each head is for itself",
        QKV_HEADS,
        {**LONG, "n_q": 67, "n_k": 67},
    ),
    Probe(
        "the order in memory does not matter",
        QKV_BATCH,
        LONG,
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
        {**LONG, "n_q": 37},
        needs=("length",),
        convention="alignment",
    ),
    Probe("one sequence alone", QKV, LONG, needs=("single",)),
    Probe(
        "scores in the hundreds",
        QKV_BATCH,
        LONG,
        change=louder("q", "k", times=8.0),
        tolerance=0.01,
    ),
    Probe(
        "loud keys are heard where they may be",
        QKV_BATCH,
        LONG,
        change=far_and_loud,
        tolerance=0.01,
    ),
    Probe(
        "float64 is computed in float64",
        QKV_BATCH,
        LONG,
        dtype=torch.float64,
    ),
    Probe("float16", QKV_BATCH, LONG, dtype=torch.float16, tolerance=0.03),
    Probe("bfloat16", QKV_BATCH, LONG, dtype=torch.bfloat16, tolerance=0.2),
    Probe("the causal flag hides later keys", CAUSAL, LONG, gradient=True),
    Probe("and in a short sequence", CAUSAL, SHORT),
    Probe(
        "causal, with fewer queries than keys",
        CAUSAL,
        {**LONG, "n_q": 37},
        needs=("length",),
        convention="alignment",
    ),
    Probe("causal in float64", CAUSAL, LONG, dtype=torch.float64),
    Probe(
        "no table of scores is made",
        QKV_BATCH,
        {"n_q": N, "n_k": N, "d": 8, "d_v": 8, "batch": 1},
        experiment=makes_no_table,
    ),
)


def needs(probe: Probe) -> tuple[str, ...]:
    """What of `OPTIONAL` a probe asks for."""
    asked = {*probe.needs, str(probe.dtype).removeprefix("torch.")}
    asked |= {"causal"} & probe.inputs.keys()
    asked |= {"heads"} if probe.inputs["q"] == QKV_HEADS["q"] else set()
    return tuple(need for need in OPTIONAL if need in asked)


PROBES = tuple(dataclasses.replace(probe, needs=needs(probe)) for probe in ALL)
