"""The probes of the kind `rms-norm`."""

import torch

from selfattn.doctor.exercises.layers.layer_norm import (
    Sources,
    all_features_equal,
    epsilon,
    for_each_token,
    large_epsilon,
    of_type,
)
from selfattn.doctor.probes import Inputs, Probe, in_other_order, louder

ROWS: Sources = {"x": "n d", "gain": "d", "eps": epsilon}
BATCH = ROWS | {"x": "batch n d"}


def silent(inputs: Inputs) -> None:
    """The first token is all zeros."""
    inputs["x"][..., :1, :] = 0.0


PROBES = (
    *for_each_token(ROWS),
    Probe("eps may be large", ROWS | {"eps": large_epsilon}, needs=("eps",)),
    Probe(
        "a token with small numbers is not blown up",
        ROWS,
        change=louder("x", times=1e-4),
    ),
    Probe("a token of zeros stays zeros", ROWS, change=silent),
    Probe("features may be all equal", ROWS, change=all_features_equal),
    of_type(torch.float64, ROWS, convention="precision"),
    of_type(torch.bfloat16, ROWS),
    Probe(
        "in float16 the squares of large numbers do not overflow",
        ROWS,
        dtype=torch.float16,
        change=louder("x", times=1000.0),
        needs=("float16",),
    ),
    Probe("the order in memory does not matter", BATCH, change=in_other_order),
)
