"""The probes of the kind `layer-norm`: those of the exercise, and more."""

import torch

from selfattn.doctor.exercises.layers.layer_norm import (
    LAYER_NORM,
    ROWS,
    of_type,
)

PROBES = (*LAYER_NORM.probes, of_type(torch.bfloat16, ROWS))
