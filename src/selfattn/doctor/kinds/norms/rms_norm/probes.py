"""The probes of the kind `rms-norm`."""

import torch

from selfattn.doctor.exercises.layers.layer_norm import (
    all_features_equal,
    epsilon,
    large_epsilon,
)
from selfattn.doctor.probes import (
    SQUARE,
    Inputs,
    Probe,
    in_other_order,
    louder,
)

ROWS = {"x": "n d", "gain": "d", "eps": epsilon}


BATCH = ROWS | {"x": "batch n d"}


def silent(inputs: Inputs) -> None:
    """The first token is all zeros."""
    inputs["x"][..., :1, :] = 0.0


PROBES = (
    Probe("it is the formula, by rows", ROWS, gradient=True),
    Probe(
        "rows are rows, when there are as many columns",
        ROWS,
        SQUARE,
        needs=("any width",),
    ),
    Probe(
        "one token without a sequence will do",
        ROWS | {"x": "d"},
        needs=("single",),
    ),
    Probe("every token of a batch is on its own", BATCH),
    Probe("eps may be large", ROWS | {"eps": large_epsilon}, needs=("eps",)),
    Probe(
        "a token with small numbers is not blown up",
        ROWS,
        change=louder("x", times=1e-4),
    ),
    Probe("a token of zeros stays zeros", ROWS, change=silent),
    Probe("features may be all equal", ROWS, change=all_features_equal),
    Probe(
        "float64 stays float64",
        ROWS,
        dtype=torch.float64,
        needs=("float64",),
        convention="precision",
    ),
    Probe(
        "bfloat16 stays bfloat16",
        ROWS,
        dtype=torch.bfloat16,
        needs=("bfloat16",),
    ),
    Probe(
        "in float16 the squares of large numbers do not overflow",
        ROWS,
        dtype=torch.float16,
        change=louder("x", times=1000.0),
        needs=("float16",),
    ),
    Probe("the order in memory does not matter", BATCH, change=in_other_order),
)
