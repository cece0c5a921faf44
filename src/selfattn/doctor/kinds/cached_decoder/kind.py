"""A decoder with a cache: word by word it must say what one pass says."""

import functools

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.cached_decoder.calling import FACTS, adapt
from selfattn.doctor.kinds.cached_decoder.mistakes import MISTAKES
from selfattn.doctor.kinds.cached_decoder.probes import of_width
from selfattn.doctor.kinds.cached_decoder.reference import cached


@functools.cache
def for_decoder(d_model: int | None) -> Exercise:
    """The exercise of caching rightly, for chunks of this width or words."""
    return Exercise(
        "cached-decoder",
        asks="in chunks, with a cache, what it says in one pass",
        solution=cached,
        probes=of_width(d_model),
        mistakes=list(MISTAKES),
    )


KIND = Kind(
    "cached-decoder",
    does="of a chunk and a cache, an output and the cache, as in one pass",
    exercise=lambda thing, facts: for_decoder(facts.get("d_model")),
    facts=FACTS,
    adapt=adapt,
)
