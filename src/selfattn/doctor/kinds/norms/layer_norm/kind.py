"""LayerNorm: functions, classes and modules."""

import dataclasses

import torch

from selfattn.doctor.exercises.layers.layer_norm import LAYER_NORM, ROWS
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.norms import calling as norm_adapter
from selfattn.doctor.probes import Probe

NEEDS = {
    "a token with a single feature becomes its shift": ("any width",),
    "rows are rows, when there are as many columns": ("any width",),
    "eps may be large": ("eps",),
    "float64 stays float64": ("float64",),
    "one token without a sequence will do": ("single",),
}

REFERENCE = dataclasses.replace(
    LAYER_NORM,
    name="layer-norm",
    probes=(
        *(
            dataclasses.replace(
                probe,
                needs=NEEDS.get(probe.asks, ()),
                convention="precision" * (probe.dtype == torch.float64),
            )
            for probe in LAYER_NORM.probes
        ),
        Probe(
            "bfloat16 stays bfloat16",
            ROWS,
            dtype=torch.bfloat16,
            needs=("bfloat16",),
        ),
    ),
    mistakes=list(LAYER_NORM.mistakes),
    optional=norm_adapter.OPTIONAL,
    conventions=norm_adapter.CONVENTIONS,
)


@REFERENCE.mistake
def variance_squared(x, gain, shift, eps):
    """Loud tokens come out quiet, and quiet ones loud.

    Cause: The deviation is (var + eps) ** 2: the wrong exponent.
    Cure: (var + eps) ** 0.5.
    Chapter: layers
    Thread: https://github.com/131250208/TPlinker-joint-extraction/issues/37
    """
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, correction=0, keepdim=True)
    return (x - mean) / (var + eps) ** 2 * gain + shift


@REFERENCE.mistake
def computed_in_float32(x, gain, shift, eps):
    """In float64, only the first seven digits are right.

    Cause: Everything is turned into float32, and back at the end.
    Cure: Only half precision needs more digits; leave float64 as it is.
    Chapter: layers
    """
    narrow = (t.float() for t in (x, gain, shift))
    return LAYER_NORM.solution(*narrow, eps).to(x.dtype)


KIND = Kind(
    "layer-norm",
    asks=LAYER_NORM.asks,
    exercise=lambda thing, facts: norm_adapter.of_its_width(REFERENCE, facts),
    facts=norm_adapter.FACTS,
    look=norm_adapter.look,
    prepare=norm_adapter.prepare,
)
