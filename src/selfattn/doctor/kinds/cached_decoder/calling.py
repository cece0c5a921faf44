"""How a decoder with a cache is called."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor import sayings
from selfattn.doctor.kind import Fact, Reading, UnclearError
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.cached_decoder.probes import Step
from selfattn.doctor.patient import Facts, handed, parameters
from selfattn.doctor.probes import numbers

CACHES = ("cache", "past", "state")  # of which its name has one
FACTS = {
    "d_model": Fact(
        "the width of its chunks; None if it takes words", saying=sayings.WIDTH
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
        named: Step = functools.partial(handed, thing)
        if names := extras(thing):
            named = functools.partial(handed_by_name, thing, names)
        return named
    return functools.partial(call, thing)


def extras(thing: Any) -> tuple[str, ...]:
    """The cache's name, and what else it needs, if its place is not next."""
    listed = parameters(thing) if isinstance(thing, nn.Module) else []
    caches = [n for n in listed[1:] if any(word in n for word in CACHES)]
    if not caches or (caches[0] == listed[1] and "use_cache" not in listed):
        return ()
    wanted = [n for n in caches if n != "use_cache"][:1]
    return (*wanted, *(n for n in listed if n == "use_cache"))


def handed_by_name(
    thing: Any, names: tuple[str, ...], chunk: Tensor, cache: Any
) -> Any:
    """Call it with its cache by name, and the flag that asks for one."""
    given = {n: n == "use_cache" or cache for n in names}
    return handed(thing, chunk, **given)


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
    maps = [m.in_features for m in thing.modules() if isinstance(m, nn.Linear)]
    width = maps[0] if maps else None
    words = any(isinstance(part, nn.Embedding) for part in thing.modules())
    if words or "call" in told:  # which may make vectors of words
        taken = [d for d in (None, width) if takes(thing, told, d)]
        if taken:
            return Reading({"d_model": taken[0]})
    if words:
        return Reading()
    if "call" in told:
        return Reading(candidates={"d_model": (width, None)})
    return Reading({"d_model": width} if maps else {})


def takes(thing: Any, told: Facts, width: int | None) -> bool:
    """Whether it takes vectors of this width, or words if that is None."""
    words = torch.tensor([[0, 1, 1], [1, 0, 0]])
    chunk = words if width is None else numbers(2, 3, width)
    step = adapt(trial_calls.alone(thing), told)
    return trial_calls.outcome(step, chunk, None) is not None
