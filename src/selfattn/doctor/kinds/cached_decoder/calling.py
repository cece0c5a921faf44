"""How a decoder with a cache is called."""

import functools
from collections.abc import Callable
from typing import Any

from torch import nn

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading, UnclearError
from selfattn.doctor.kinds.cached_decoder.probes import Step
from selfattn.doctor.patient import Facts

FACTS = {
    "d_model": Fact(
        "the width of its chunks; None if it takes words", saying=sayings.COUNT
    ),
    "call": Fact(
        "call(patient, chunk, cache) returns output and cache; the cache "
        "is None at first. A method needs none: hand over decoder.step",
        saying=sayings.FUNCTION,
    ),
}


def adapt(thing: Any, facts: Facts) -> Step:
    """A step of the patient: of a chunk and a cache, output and cache."""
    call: Callable[..., Any] | None = facts.get("call")
    if call is None:
        named: Step = thing
        return named
    return functools.partial(call, thing)


def read(thing: Any, told: Facts) -> Reading:
    """Whether it takes words or vectors: an embedding takes words.

    Raises:
        UnclearError: of a class, which makes decoders and is none.
    """
    if isinstance(thing, type):
        raise UnclearError(
            f"{thing.__name__} is a class, and a decoder is asked for, made "
            "and ready to be called: hand over one of its kind."
        )
    if "d_model" in told or not isinstance(thing, nn.Module):
        return Reading()
    if any(isinstance(part, nn.Embedding) for part in thing.modules()):
        return Reading()
    maps = [m for m in thing.modules() if isinstance(m, nn.Linear)]
    width = maps[0].in_features if maps else None
    if "call" in told:  # which may make vectors of words
        return Reading(candidates={"d_model": (width, None)})
    return Reading({"d_model": width} if maps else {})
