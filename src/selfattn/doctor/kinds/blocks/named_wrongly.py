"""Whether parts of a block were named that are none, or do something else."""

import inspect
from collections.abc import Callable
from typing import Any

from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import activations, flat_parts, properties
from selfattn.doctor.kinds.blocks.parts import called
from selfattn.doctor.patient import Facts

Call = Callable[..., Any]


def names_wrongly(kind: Kind, block: Any, told: Facts) -> bool:
    """Whether maps or parts were named that are none, or not in the block.

    Or what bends its network, and something else does.
    """
    found = {
        "feed_forward": lambda: called(block, told["feed_forward"]),
        "flat_attention": lambda: flat_parts.attention(block, told),
        "flat_feed_forward": lambda: flat_parts.told_network(block, told),
    }
    return any(
        told.get(name) and trial_calls.outcome(find) is None
        for name, find in found.items()
    ) or bends_otherwise(kind, block, told)


def bends_otherwise(kind: Kind, block: Any, told: Facts) -> bool:
    """Whether a network is seen to be bent by something else than was told."""
    if not told.get("flat_feed_forward"):
        return False
    first, _, last = told["flat_feed_forward"]
    up, down = block.get_submodule(first), block.get_submodule(last)
    call = kind.adapt(block, told)
    wide = widths_of(block, call)
    if not wide:
        return False  # who cannot be called is told so elsewhere
    seen = activations.passed_on([up], down, call, wide[0], len(wide))
    if seen is None:
        return False
    [given], taken = seen
    bend = flat_parts.told_network(block, told).bend
    return not activations.is_same(bend(given), taken)


def widths_of(block: Any, call: Call) -> list[int]:
    """How wide the texts are with which a block can be called; [] if none."""
    across = "context" in inspect.signature(call).parameters
    wide = trial_calls.outcome(properties.widths, block, call, across)
    return [d for d in (wide or ())[:2] if d is not None]
