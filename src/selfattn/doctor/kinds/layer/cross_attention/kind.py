"""Modules that attend from one sequence to another."""

from typing import Any

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Examples, Kind, Reading
from selfattn.doctor.kinds.attention.calling import MEANT
from selfattn.doctor.kinds.layer import calling, exercise, reading
from selfattn.doctor.kinds.layer.facts import FACTS
from selfattn.doctor.patient import Facts
from selfattn.multihead import MultiHeadAttention


def read(thing: Any, told: Facts) -> Reading:
    """What can be read off it, as off a layer of self-attention."""
    return reading.read(thing, told, cross=True)


def reference(thing: Any, facts: Facts) -> Exercise:
    """Attention by heads with the module's own projections, or properties."""
    return exercise.of(thing, facts, cross=True)


def examples() -> Examples:
    """Healthy layers, of each sort of probes."""
    layer = MultiHeadAttention(12, 3, projection_bias=True)
    plain = {"causal": False, "layout": "BND"}
    return {
        "": (layer, plain),
        "properties": (layer, {**plain, "formula": "own"}),
    }


KIND = Kind(
    "cross-attention",
    does="a module that attends from a sequence to another",
    exercise=reference,
    facts=FACTS,
    read=read,
    prepare=calling.prepared,
    code=calling.code,
    adapt=calling.adapt,
    fallback=reading.fallback,
    examples=examples,
    meant=MEANT,
    perhaps=reading.perhaps,
)
