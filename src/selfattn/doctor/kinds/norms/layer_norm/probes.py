"""The probes of the kind `layer-norm`: those of the exercise, and more."""

import torch

from selfattn.doctor.exercises.layers.layer_norm import LAYER_NORM, ROWS
from selfattn.doctor.probes import Probe

PROBES = (
    *LAYER_NORM.probes,
    Probe(
        "bfloat16 stays bfloat16",
        ROWS,
        dtype=torch.bfloat16,
        needs=("bfloat16",),
    ),
)
