"""A kind of patient: what a right one does, and how one is called."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.patient import Facts, directly

Examples = Mapping[str, tuple[Any, Mapping[str, Any]]]


class UnclearError(Exception):
    """A fact is needed that nobody told and no probe decides."""


@dataclass(frozen=True, eq=False)
class Fact:
    """Something that may be said of a patient, so that none need guess it.

    ``options`` holds what it may be, each with a few words on what that
    means; where there are none, it may be anything. When nobody says which,
    and it cannot be read off, the options are ``tried`` one after the other;
    if they are not to be, it stays unsaid.
    """

    says: str
    options: Mapping[Any, str] = field(default_factory=dict)
    tried: bool = True
    of: str = ""  # the need that it is about, if it is about one


TAKES = Fact("names of what it can do; all else is not asked")


def nothing(thing: Any, said: Facts) -> dict[str, Any]:
    """What can be read off a thing of which nothing can be read off."""
    return {}


def needless() -> Examples:
    """The examples of a kind whose reference does not depend on the thing."""
    return {"": (None, {})}


def as_it_is(thing: Any, facts: Facts) -> Any:
    """The thing itself: it needs no preparation."""
    return thing


def by_its_name(thing: Any, facts: Facts) -> tuple[str, ...]:
    """No code: it is there already, under its own name."""
    name = getattr(thing, "__name__", "")
    return (name if name.isidentifier() else "answer",)


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of thing that can be examined.

    Args:
        name: what it is called by.
        asks: what things of this kind do, in a few words.
        exercise: from thing and facts, the reference, probes and mistakes.
        facts: what may be said of such a thing.
        look: what can be read off a thing without calling it: further facts,
            under "lacks" those of the exercise's ``optional`` that it does
            not take, each with the reason, under "has" those that it must
            not refuse, and under "try" values to try, of facts by name.
        prepare: make of the thing what is called, such as an object of a
            class or a copy that may be changed.
        adapt: see `Patient`.
        code: lines that make what is called, for a snippet, and its name.
        fallback: facts under which less is asked, to be tried when it is
            neither healthy nor has a known mistake without them.
        examples: makes healthy things of this kind, each with what is to be
            said of it, by labels; None is enough for a thing on which the
            exercise does not depend.
    """

    name: str
    asks: str
    exercise: Callable[[Any, Facts], Exercise]
    facts: Mapping[str, Fact] = field(default_factory=dict)
    look: Callable[[Any, Facts], dict[str, Any]] = nothing
    prepare: Callable[[Any, Facts], Any] = as_it_is
    adapt: Callable[[Any, Facts], Callable[..., object]] = directly
    code: Callable[[Any, Facts], tuple[str, ...]] = by_its_name
    fallback: Callable[[Any, Facts], dict[str, Any]] = nothing
    examples: Callable[[], Examples] = needless

    def check(self, said: Facts) -> None:
        """Raise a `ValueError` unless the facts are facts of this kind."""
        known = {**self.facts, "takes": TAKES}
        for name, value in said.items():
            if name not in known:
                raise ValueError(
                    f"what is said of a patient must be a fact of its kind, "
                    f"but {self.name!r} has no {name!r}; it has "
                    f"{', '.join(known)}"
                )
            options = known[name].options
            if options and value not in options:
                raise ValueError(
                    f"{name} must be one of "
                    f"{', '.join(map(repr, options))}, but it is {value!r}"
                )

    def readings(self, said: Facts, seen: Facts) -> Iterator[dict[str, Any]]:
        """Every way to read a patient that is not ruled out by the facts.

        Args:
            said: the facts that were told.
            seen: those that were read off the thing.
        """
        seen = dict(seen)
        wanted = seen.pop("try", {})
        tried = {
            name: list(wanted.get(name, fact.options))
            for name, fact in self.facts.items()
            if name not in {**said, **seen}
            and (name in wanted or (fact.tried and fact.options))
        }
        # Names that were told are among those that were seen, beside others.
        names = {"names": seen["names"]} if "names" in seen else {}
        for chosen in product(*tried.values()):
            one = dict(zip(tried, chosen, strict=True))
            yield {**one, **seen, **said, **names}

    def late(self) -> set[str]:
        """The needs of which some facts tell: those are tried last."""
        return {fact.of for fact in self.facts.values() if fact.of}

    def early(self, facts: Facts) -> tuple[Any, ...]:
        """What a reading says besides the facts that are tried last."""
        return tuple(
            repr(facts.get(name))
            for name, fact in self.facts.items()
            if not fact.of
        )
