"""A kind of patient: what a right one does, and how one is called."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.patient import Facts, directly
from selfattn.doctor.sayings import Saying, is_whole, types_in
from selfattn.signatures import shown

Inner = Mapping[str, tuple[Any, str, Facts]]
Examples = Mapping[str, tuple[Any, Mapping[str, Any]]]


class UnclearError(Exception):
    """A fact is needed that nobody told and no probe decides."""


@dataclass(frozen=True, eq=False)
class Fact:
    """Something that may be said of a patient, so that none need guess it.

    ``options`` holds what it may be, each with a few words on what that
    means; where there are none, or others may be said as well, ``saying``
    tells what it may be. None may always be said, and says nothing. When
    nobody says which, and it cannot be read off, the options are ``tried``
    one after the other; if they are not to be, it stays unsaid.
    """

    meaning: str
    options: Mapping[Any, str] = field(default_factory=dict)
    tried: bool = True
    need: str = ""  # the need that it is about, if it is about one
    saying: Saying | None = None

    def allows(self, value: object) -> bool:
        """Whether it may be this."""
        if among(value, self.options):
            return True
        if self.saying is None:
            return not self.options
        return (value is None and not self.options) or self.saying.fits(value)

    @property
    def words(self) -> str:
        """What it may be."""
        listed = ", ".join(map(repr, self.options))
        listed = f"one of {listed}" if listed else ""
        said = self.saying.words if self.saying else ""
        return ", or ".join(filter(None, (listed, said)))


TAKES = Fact("names of what it can do; all else is not asked")
DTYPES = Fact("the number types that it promises, such as float32; no others")
TYPES = ("float64", "float32", "bfloat16", "float16")
# Who takes a mask takes one of rows, or says otherwise by its axes.
IMPLIED = {"rows": "mask", "texts": "mask", "together": "padding"}
IMPLIED_BY_ALL = ("batches", "strides")
UNFOUND = "parts"  # what was looked for in a thing: nobody says it takes that
IN_STEPS = "in steps"  # how parts lie in a forward of which all is seen
COMMON = {"takes": TAKES, "dtypes": DTYPES}  # facts of every kind


def with_types(told: Facts) -> Facts:
    """The facts, with the number types that are promised by their names.

    Raises:
        ValueError: if something else is promised.
    """
    if told.get("dtypes") is None:
        return told
    return {**told, "dtypes": types_in(told["dtypes"], TYPES)}


@dataclass(frozen=True, eq=False)
class Reading:
    """What is known of a thing before it is called.

    Args:
        facts: facts by name, such as the names of its arguments.
        candidates: facts that are open, each with the values to try.
        lacks: what of the exercise's ``optional`` it does not take, each
            with the reason; with none, if that is not worth a word.
        has: what of it the thing plainly takes, and so must not refuse.
        takes: what of it the thing was said to take, and nothing else; None
            if that was not said.
    """

    facts: Facts = field(default_factory=dict)
    candidates: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)
    has: tuple[str, ...] = ()
    takes: tuple[str, ...] | None = None

    def with_facts(self, **facts: Any) -> "Reading":
        """The same reading, with more facts or other ones."""
        return replace(self, facts={**self.facts, **facts})

    @property
    def required(self) -> tuple[str, ...]:
        """What of ``optional`` the thing must not refuse."""
        return (*(self.takes or ()), *self.has)

    def without(self, optional: Mapping[str, str]) -> dict[str, str]:
        """What of ``optional`` is not asked, each with the reason."""
        if self.takes is None:
            return dict(self.lacks)
        why = "it was not said to take it"
        taken = {*self.takes, *IMPLIED_BY_ALL}
        taken |= {n for n, by in IMPLIED.items() if by in taken}
        unsaid = {need: why for need in optional if need not in taken}
        found = self.lacks.get(UNFOUND)
        return unsaid | ({} if found is None else {UNFOUND: found})


def nothing(thing: Any, told: Facts) -> Reading:
    """What can be read off a thing of which nothing can be read off."""
    return Reading()


def no_less(thing: Any, told: Facts, seen: Reading) -> None:
    """There is no reading under which less is asked."""


def nothing_else(thing: Any, facts: Facts) -> Iterator[Facts]:
    """There is nothing more that may be meant of it."""
    yield from ()


def needless() -> Examples:
    """The examples of a kind whose reference does not depend on the thing."""
    return {"": (None, {})}


def as_it_is(thing: Any, facts: Facts) -> Any:
    """The thing itself: it needs no preparation."""
    return thing


def by_its_name(thing: Any, facts: Facts) -> tuple[str, ...]:
    """No code: it is there already, under its own name."""
    name = getattr(thing, "__name__", "")
    usable = isinstance(name, str) and name.isidentifier()
    return (name if usable else "answer",)


def too_large(value: object) -> str:
    """What keeps a whole number from being any, if something does."""
    number = isinstance(value, int) and not is_whole(int(value))
    return ", which no tensor can hold" if number else ""


def among(value: object, options: Mapping[Any, str]) -> bool:
    """Whether a value is one of the options; a list, say, is never one."""
    try:
        return value in options
    except Exception:  # it cannot be a key
        return False


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of thing that can be examined.

    Args:
        name: what it is called by.
        does: what things of this kind do, in a few words.
        exercise: from thing and facts, the reference, probes and mistakes.
        facts: what may be said of such a thing.
        read: from thing and facts that were told, what can be read off the
            thing without calling it.
        prepare: make of the thing what is called, such as an object of a
            class or a copy that may be changed.
        adapt: see `Patient`.
        code: lines that make what is called, for a snippet, and its name.
        fallback: from thing, facts that were told and its reading, another
            one under which less is asked, if there is one. It is tried when
            the thing is neither healthy nor has a known mistake.
        examples: makes healthy things of this kind, each with what is to be
            said of it, by labels; None is enough for a thing on which the
            exercise does not depend.
        meant: of mistakes that some make on purpose, the fact that says so.
        promised_by: of such mistakes, the fact by which they are excluded;
            whoever did not tell it may mean them, whatever else he told. Of
            several, one must be told: they cannot be read off.
        perhaps: from a thing and what is known of it, facts by each of which
            a thing that is unlike all others might be right.
        claims: from a thing of which nothing was told and what is known of
            it, facts that are read off it as what it claims; then its
            numbers alone are asked.
        within: from a healthy thing and facts that were told, parts of which
            it matters what they compute, by their names, each with its kind
            and the facts that are known of it.
        sights: the names of mistakes by which one of its own formula is
            called for what is seen of it, and not for its numbers.
        whole: of a whole model, which is held to no reference: from thing,
            facts and a watch, the report.
        as_used: whether a module of this kind is asked as a function is: as
            it is once it is trained, and one in the place of its class.
    """

    name: str
    does: str
    exercise: Callable[[Any, Facts], Exercise]
    facts: Mapping[str, Fact] = field(default_factory=dict)
    read: Callable[[Any, Facts], Reading] = nothing
    prepare: Callable[[Any, Facts], Any] = as_it_is
    adapt: Callable[[Any, Facts], Callable[..., object]] = directly
    code: Callable[[Any, Facts], tuple[str, ...]] = by_its_name
    fallback: Callable[[Any, Facts, Reading], Reading | None] = no_less
    examples: Callable[[], Examples] = needless
    meant: Mapping[str, str] = field(default_factory=dict)
    promised_by: Mapping[str, str | tuple[str, ...]] = field(
        default_factory=dict
    )
    perhaps: Callable[[Any, Facts], Iterator[Facts]] = nothing_else
    claims: Callable[[Any, Facts], Iterator[Facts]] = nothing_else
    within: Callable[[Any, Facts], Inner] | None = None
    sights: tuple[str, ...] = ()
    whole: Callable[..., Any] | None = None
    as_used: bool = False

    def check(self, told: Facts) -> Facts:
        """The facts, in the form in which they are used; None says nothing.

        Raises:
            ValueError: unless they are facts of this kind.
        """
        known = {**self.facts, **COMMON}
        for name, value in told.items():
            if name not in known:
                raise ValueError(
                    f"what is said of a patient must be a fact of its kind, "
                    f"but {self.name!r} has no {name!r}; it has "
                    f"{', '.join(known)}"
                )
            if not known[name].allows(value):
                raise ValueError(
                    f"{name} must be {known[name].words}, but it is "
                    f"{shown(value)}{too_large(value)}"
                )
        said = {
            name: value
            for name, value in told.items()
            if value is not None or among(None, known[name].options)
        }
        return with_types(said)

    def readings(self, told: Facts, seen: Reading) -> Iterator[Reading]:
        """Every way to read a patient that is not ruled out by the facts.

        Args:
            told: the facts that were told.
            seen: what was read off the thing.
        """
        wanted = seen.candidates
        tried = {
            name: list(wanted.get(name, fact.options))
            for name, fact in self.facts.items()
            if name not in {**told, **seen.facts}
            and (name in wanted or (fact.tried and fact.options))
        }
        takes = told.get("takes")
        # Names that were told are among those that were seen, beside others.
        names = {n: x for n, x in seen.facts.items() if n == "names"}
        for chosen in product(*tried.values()):
            one = dict(zip(tried, chosen, strict=True))
            yield replace(
                seen,
                facts={**one, **seen.facts, **told, **names},
                candidates={},
                takes=None if takes is None else tuple(takes),
            )

    def asked_of(self, told: Facts) -> tuple[str, ...]:
        """The needs of which the facts that were told make promises."""
        of_facts = [self.facts[n].need for n in told if n in self.facts]
        types = told.get("dtypes") or ()
        return (*filter(None, of_facts), *(t for t in types if t in TYPES))

    def excluded(self, told: Facts) -> dict[str, str]:
        """The types that were not promised, where some were."""
        if told.get("dtypes") is None:
            return {}
        why = "it was not promised"
        return {t: why for t in TYPES if t not in told["dtypes"]}

    def needs_tried_last(self) -> set[str]:
        """The needs of which some facts tell: see `Fact.need`."""
        return {fact.need for fact in self.facts.values() if fact.need}

    def tried_first(self, facts: Facts) -> tuple[Any, ...]:
        """The values of the facts that tell of no need, to be compared.

        Readings for which they are the same differ on few probes.
        """
        return tuple(
            repr(facts.get(name))
            for name, fact in self.facts.items()
            if not fact.need
        )
