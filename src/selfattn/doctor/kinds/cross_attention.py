"""Modules that attend from one sequence to another."""

from typing import Any

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds import layers_called, self_attention
from selfattn.doctor.kinds.layer_facts import FACTS
from selfattn.doctor.patient import Facts
from selfattn.multihead import MultiHeadAttention


def look(thing: Any, said: Facts) -> dict[str, Any]:
    """What can be read off it, as off a layer of self-attention."""
    return self_attention.look(thing, said, cross=True)


def reference(thing: Any, facts: Facts) -> Exercise:
    """Attention by heads with the module's own projections, or properties."""
    return self_attention.reference(thing, facts, cross=True)


def examples() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Healthy layers, of each sort of probes."""
    layer = MultiHeadAttention(12, 3, projection_bias=True)
    return {
        "": (layer, {"causal": False}),
        "properties": (layer, {"causal": False, "formula": "own"}),
    }


KIND = Kind(
    "cross-attention",
    asks="a module that attends from a sequence to another",
    exercise=reference,
    facts=FACTS,
    look=look,
    prepare=layers_called.prepared,
    code=layers_called.code,
    adapt=layers_called.adapt,
    fallback=self_attention.fallback,
)
