"""A patient: what is examined, called as the reference of its kind is."""

import copy
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.jit import ScriptModule
from torch.nn.parameter import UninitializedParameter

from selfattn.doctor.copying import copy_of

Facts = Mapping[str, Any]
LATER = (
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
)


class Call(NamedTuple):
    """One call of a patient: what it was given, each thing on its own."""

    arguments: tuple[Any, ...]
    named: dict[str, Any]
    gave_none: bool = False


def directly(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call a thing just as the reference is called."""
    called: Callable[..., object] = thing
    return called


def unseen(claim: object) -> None:
    """Nobody looks on."""


@dataclass(frozen=True, eq=False)
class Patient:
    """A thing in its kind's clothes: called like the reference, it answers.

    ``adapt(thing, facts)`` makes the callable that takes what the reference
    takes, hands it to the thing in the thing's own layout and under its own
    names, and gives back what the reference would give.
    """

    thing: Any
    facts: Facts
    adapt: Callable[[Any, Facts], Callable[..., object]] = directly
    watch: Callable[[str], object] = unseen  # is told each probe's claim
    code: tuple[str, ...] = ()  # lines that make it, then its name in them

    def __call__(self, *arguments: Any, **named: Any) -> object:
        """Call the thing in the way that its facts tell."""
        return self.adapt(self.thing, self.facts)(*arguments, **named)

    def recorded(self) -> tuple["Patient", list[Call]]:
        """The same patient, and a list that fills with the calls it gets."""
        calls: list[Call] = []
        return replace(self, thing=Recorder(self.thing, calls)), calls


class Recorder:
    """A thing that keeps what it was called with, before it can change it."""

    def __init__(self, thing: Any, calls: list[Call]):
        """Stand before a thing."""
        self.thing, self.calls = thing, calls

    def __call__(self, *arguments: Any, **named: Any) -> object:
        """Note the call, and make it."""
        kept = tuple(copied(x) for x in arguments)
        call = Call(kept, {n: copied(x) for n, x in named.items()})
        at = len(self.calls)
        self.calls.append(call)
        given = self.thing(*arguments, **named)
        self.calls[at] = call._replace(gave_none=given is None)
        return given

    def __deepcopy__(self, known: dict[int, Any]) -> "Recorder":
        """Stand before a copy of the thing."""
        return Recorder(copy.deepcopy(self.thing, known), self.calls)

    def to(self, dtype: Any) -> "Recorder":
        """Stand before the thing in another type."""
        return Recorder(self.thing.to(dtype), self.calls)

    def __getattr__(self, name: str) -> Any:
        """Whatever else the thing has."""
        return getattr(self.thing, name)


def numberless(thing: Any) -> str:
    """Why a module has no numbers to examine, if it has none."""
    if not issubclass(type(thing), nn.Module):
        return ""
    for x in thing.parameters():
        if isinstance(x, UninitializedParameter):
            return "some of its weights are made at its first call; call it"
        if x.is_meta:
            return "its weights are on the device meta, and have no numbers"
    return ""


def unasked(thing: Any) -> str:
    """Why a thing cannot be called as others are, if it cannot.

    >>> async def later(q, k, v): ...
    >>> unasked(later)
    'it is asynchronous, or a generator: hand over what returns a tensor'
    """
    if isinstance(thing, ScriptModule):
        return "it is scripted, and names no arguments: hand over its module"
    called = getattr(thing, "forward", thing)
    by_type = inspect.getattr_static(type(called), "__call__", None)
    for one in (called, by_type):
        if any(is_late(one) for is_late in LATER):
            return (
                "it is asynchronous, or a generator: hand over what returns "
                "a tensor"
            )
    return ""


def is_class_of_callables(thing: Any) -> bool:
    """Whether it is a class, and what it makes is called.

    >>> is_class_of_callables(nn.Linear), is_class_of_callables(int)
    (True, False)
    """
    if not isinstance(thing, type) or issubclass(thing, type):
        return False
    return any("__call__" in vars(one) for one in thing.__mro__)


def made_of_nothing(thing: Any) -> Any:
    """One of a class, if what it makes is called and it asks for nothing.

    What is made of a class of modules, their kinds know.
    """
    if not is_class_of_callables(thing) or issubclass(thing, nn.Module):
        return thing
    try:
        inspect.signature(thing).bind()
    except (TypeError, ValueError):
        return thing
    return thing()


def as_used(thing: Any) -> Any:
    """A module, put as it is once it is trained; of a class, one it makes.

    >>> as_used(nn.Dropout).training
    False

    Raises:
        Exception: whatever the constructor of a class raises, such as for an
            argument without which none can be made.
    """
    if is_class_of_callables(thing):
        thing = thing()
    trains = isinstance(thing, nn.Module) and thing.training
    return thing.eval() if trains else thing


def in_float32(thing: Any) -> Any:
    """A copy in float32 of a module whose weights are all of another type.

    So it was turned as a whole, and its inputs with it. A table that is no
    weight may be of another type by mistake.

    >>> in_float32(nn.Linear(2, 3).double()).weight.dtype
    torch.float32
    """
    weights = thing.parameters() if isinstance(thing, nn.Module) else ()
    types = {x.dtype for x in weights if x.is_floating_point()}
    if len(types) != 1 or torch.float32 in types:
        return thing
    return copy_of(thing).float()


def copied(x: Any) -> Any:
    """A tensor of one's own, in the same order of memory."""
    return x.detach().clone() if isinstance(x, Tensor) else x


def handed(thing: Any, *arguments: Any, **named: Any) -> Any:
    """What a thing gives for these, which may have a place or name alone.

    What has a place alone Python takes by no name. Before the last of such
    that is given, each that nobody gives has its default. For what comes
    after all places stand the names that have to be given, in their order.
    """
    called = getattr(thing, "forward", thing)
    if is_usual(called, len(arguments)):
        return thing(*arguments, **named)
    given, alone = list(arguments), places_alone(thing)
    last = max((i for i, p in enumerate(alone) if p.name in named), default=-1)
    for p in alone[len(given) : last + 1]:
        if p.name not in named and p.default is p.empty:
            break  # Python says that it is missing
        given.append(named.pop(p.name, p.default))
    later = by_name_alone(called, given, named)
    return thing(*given[: len(given) - len(later)], **named, **later)


def is_usual(called: Any, many: int) -> bool:
    """Whether so many have places, and names, as its code tells at once."""
    if not isinstance(called, FunctionType | MethodType):
        return False
    if {"__wrapped__", "__signature__"} & called.__dict__.keys():
        return False
    code = called.__code__
    own = isinstance(called, MethodType)  # itself has the first place
    fits = not code.co_kwonlyargcount or many + own <= code.co_argcount
    return fits and not code.co_posonlyargcount


def by_name_alone(
    called: Any, given: list[Any], named: dict[str, Any]
) -> dict[str, Any]:
    """Those of the given that come after all places, by their names."""
    every = all_parameters(called)
    if any(p.kind is p.VAR_POSITIONAL for p in every):
        return {}
    places = sum(p.kind < p.KEYWORD_ONLY for p in every)
    names = [
        p.name
        for p in every
        if p.kind is p.KEYWORD_ONLY and p.default is p.empty
    ]
    names = [name for name in names if name not in named]
    return dict(zip(names, given[places:], strict=False))


def places_alone(thing: Any) -> list[inspect.Parameter]:
    """The parameters before a slash, which have no name for the caller."""
    every = all_parameters(getattr(thing, "forward", thing))
    return [p for p in every if p.kind is p.POSITIONAL_ONLY]


def all_parameters(called: Any) -> list[inspect.Parameter]:
    """The parameters of a callable; none if it is written in C."""
    try:
        return [*inspect.signature(called).parameters.values()]
    except (TypeError, ValueError):
        return []


def parameters(thing: Any) -> list[str]:
    """The names of a callable's parameters, in their order."""
    try:
        called = getattr(thing, "forward", thing)  # of a module
        listed = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):  # it is written in C: see what it says
        words = re.search(r"\(([^()]*)\)", getattr(thing, "__doc__", "") or "")
        listed_there = words[1].split(",") if words else []
        return [re.split("[=:]", word)[0].strip() for word in listed_there]
    return [p.name for p in listed if p.kind is not p.VAR_KEYWORD]
