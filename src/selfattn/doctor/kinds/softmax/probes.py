"""The probes of the kind `softmax`: those of the exercise, and more."""

import math

import torch

from selfattn.doctor.exercises.dot_product.softmax import ROWS, SOFTMAX
from selfattn.doctor.probes import Inputs, Probe


def all_forbidden(inputs: Inputs) -> None:
    """All scores of the first row are -inf, but a single score stays."""
    scores = inputs["scores"]
    scores[0] = -math.inf if scores.shape[-1] > 1 else 0.0


def half(dtype: torch.dtype, name: str) -> Probe:
    """A probe in half precision."""
    claim = f"{name} stays {name}"
    return Probe(claim, ROWS, dtype=dtype, needs=(name,))


OPTIONAL = {
    "single": "one row without a table",
    "batch": "several tables",
    "forbidden": "scores of -inf",
    "float64": "float64",
    "bfloat16": "bfloat16",
    "float16": "float16",
}
PROBES = (
    *SOFTMAX.probes,
    half(torch.bfloat16, "bfloat16"),
    half(torch.float16, "float16"),
    Probe(
        "a row in which all is forbidden has no weights: NaN",
        ROWS,
        change=all_forbidden,
        needs=("forbidden",),
        convention="empty_row",
    ),
)
