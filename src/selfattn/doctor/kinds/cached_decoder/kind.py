"""A decoder with a cache: word by word it must say what one pass says."""

import functools

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds.cached_decoder.calling import FACTS, adapt, read
from selfattn.doctor.kinds.cached_decoder.mistakes import (
    MISTAKES,
)
from selfattn.doctor.kinds.cached_decoder.one_pass import as_layer
from selfattn.doctor.kinds.cached_decoder.probes import of_width
from selfattn.doctor.kinds.cached_decoder.reference import cached
from selfattn.doctor.kinds.cached_decoder.signs import (
    GIVEN_AWAY,
    UNSURE,
    sign,
)


@functools.cache
def for_decoder(d_model: int | None) -> Exercise:
    """The exercise of caching rightly, for chunks of this width or words."""
    return Exercise(
        "cached-decoder",
        asks="in chunks, with a cache, what it says in one pass",
        solution=cached,
        probes=of_width(d_model),
        mistakes=MISTAKES,
        deviations=GIVEN_AWAY,
        signs=functools.partial(sign, d_model=d_model),
        inside=as_layer,
        unsure=UNSURE,
    )


KIND = Kind(
    "cached-decoder",
    does="of a chunk and a cache, an output and the cache, as in one pass",
    exercise=lambda thing, facts: for_decoder(facts.get("d_model")),
    facts=FACTS,
    read=read,
    adapt=adapt,
)
