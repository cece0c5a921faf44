"""Softmax: functions and modules that turn scores into weights."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.exercises.dot_product.softmax import ROWS, SOFTMAX
from selfattn.doctor.kind import Fact, Kind
from selfattn.doctor.patient import Facts, parameters
from selfattn.doctor.probes import Inputs, Probe

AXES = ("dim", "axis")
NEEDS = {
    "one row without a table will do": ("single",),
    "it is over the last axis of many": ("batch",),
    "the order in memory does not matter": ("batch",),
    "float64 stays float64": ("float64",),
    "-inf gets the weight zero": ("forbidden",),
}


def all_forbidden(inputs: Inputs) -> None:
    """All scores of the first row are -inf, but a single score stays."""
    scores = inputs["scores"]
    scores[0] = -math.inf if scores.shape[-1] > 1 else 0.0


def half(dtype: torch.dtype, name: str) -> Probe:
    """A probe in half precision."""
    asks = f"{name} stays {name}"
    return Probe(asks, ROWS, dtype=dtype, needs=(name,))


REFERENCE = dataclasses.replace(
    SOFTMAX,
    name="softmax",
    probes=(
        *(
            dataclasses.replace(probe, needs=NEEDS.get(probe.asks, ()))
            for probe in SOFTMAX.probes
        ),
        half(torch.bfloat16, "bfloat16"),
        half(torch.float16, "float16"),
        Probe(
            "a row in which all is forbidden has no weights: NaN",
            ROWS,
            change=all_forbidden,
            needs=("forbidden",),
            convention="empty_row",
        ),
    ),
    mistakes=list(SOFTMAX.mistakes),
    optional={
        "single": "one row without a table",
        "batch": "several tables",
        "forbidden": "scores of -inf",
        "float64": "float64",
        "bfloat16": "bfloat16",
        "float16": "float16",
    },
    conventions={
        "empty_row": {
            "nan": "",
            "zeros": "empty row gives zeros",
            "average": "empty row gives the average",
        }
    },
)


@REFERENCE.mistake
def empty_row_gives_zeros(scores):
    """A row in which all is forbidden has weights that are all 0.

    Cause: NaN was wiped out, or the sum is kept from being 0.
    Cure: In attention that is what one wants; of softmax it is not asked.
    Chapter: masks
    """
    return scores.softmax(dim=-1).nan_to_num(0.0)


@REFERENCE.mistake
def empty_row_gives_the_average(scores):
    """A row in which all is forbidden has weights that are all alike.

    Cause: -inf is replaced by a large negative number first.
    Cure: Leave -inf as it is; exp(-inf) is 0.
    Chapter: masks
    """
    return scores.clamp(min=torch.finfo(scores.dtype).min).softmax(dim=-1)


@REFERENCE.mistake
def maximum_or_zero(scores):
    """Scores that are all far below 0 give NaN.

    Cause: What is subtracted is the row's maximum or 0, whichever is larger.
    Cure: Subtract the maximum itself, even if it is negative.
    Chapter: dot_product
    Thread: https://github.com/FluxML/NNlib.jl/pull/43
    """
    powers = (scores - scores.amax(-1, keepdim=True).clamp(min=0)).exp()
    return powers / powers.sum(-1, keepdim=True)


@REFERENCE.mistake
def scores_taken_from_the_maximum(scores):
    """The smallest score has the largest weight.

    Cause: The scores are subtracted from the maximum, instead of the maximum
        from the scores.
    Cure: scores - maximum.
    Chapter: dot_product
    Thread: https://github.com/CASIA-IVA-Lab/DANet/issues/48
    """
    return (scores.amax(-1, keepdim=True) - scores).softmax(dim=-1)


@REFERENCE.mistake
def over_the_first_axis(scores):
    """Right for a single row; in a table, columns sum to one.

    Cause: softmax over dim=0.
    Cure: dim=-1: the keys of one query share its attention.
    Chapter: dot_product
    Thread: https://github.com/PetrochukM/PyTorch-NLP/issues/2
    """
    return scores.softmax(dim=0)


@REFERENCE.mistake
def computed_in_half_precision(scores):
    """The weights are right to two digits.

    Cause: The scores are turned into half precision, and back.
    Cure: Softmax in float32 or in the type of the scores.
    Chapter: dot_product
    """
    return scores.bfloat16().softmax(dim=-1).to(scores.dtype)


def look(thing: Any, said: Facts) -> dict[str, Any]:
    """The name of its axis, if it must be told one."""
    called = thing.forward if isinstance(thing, nn.Module) else thing
    names = [name for name in AXES if name in parameters(called)]
    return {"axis": names[0]} if names else {"axis": None}


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with scores, and with the last axis if it asks for one."""

    def softmax(scores: Tensor) -> object:
        axis = facts.get("axis")
        return thing(scores, **({axis: -1} if axis else {}))

    return softmax


KIND = Kind(
    "softmax",
    asks=REFERENCE.asks,
    exercise=lambda thing, facts: REFERENCE,
    facts={
        "axis": Fact("the name of the argument that says over which axis"),
        "empty_row": Fact(
            "what a row becomes in which all is forbidden",
            {
                "nan": "NaN",
                "zeros": "zeros",
                "average": "all weights alike",
            },
            tried=False,
        ),
    },
    look=look,
    adapt=adapt,
)
