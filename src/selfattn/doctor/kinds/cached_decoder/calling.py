"""How a decoder with a cache is called."""

import functools
from collections.abc import Callable
from typing import Any

from selfattn.doctor.kind import Fact
from selfattn.doctor.kinds.cached_decoder.probes import Step
from selfattn.doctor.patient import Facts

FACTS = {
    "d_model": Fact("the width of its chunks; None if it takes words"),
    "call": Fact(
        "call(patient, chunk, cache) returns output and cache; the cache "
        "is None at first"
    ),
}


def adapt(thing: Any, facts: Facts) -> Step:
    """A step of the patient: of a chunk and a cache, output and cache."""
    call: Callable[..., Any] | None = facts.get("call")
    if call is None:
        named: Step = thing
        return named
    return functools.partial(call, thing)
