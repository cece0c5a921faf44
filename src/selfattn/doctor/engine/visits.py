"""A thing in each way to read it, and what it is held to there."""

import functools
import types
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from selfattn.doctor.engine.choice import likelihood
from selfattn.doctor.engine.diagnosis import (
    Case,
    judge,
)
from selfattn.doctor.engine.isolation import RefusedError, Watch
from selfattn.doctor.engine.matching import Seen
from selfattn.doctor.engine.outcome import OwnTroubleError
from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import (
    IMPLIED,
    UNFOUND,
    Kind,
    Reading,
    UnclearError,
)
from selfattn.doctor.patient import Facts, Patient
from selfattn.doctor.report import Report

NUMBERS = "numbers"  # what is not asked of whose formula nobody knows
NAMED = (
    type,
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
)


class Visit(NamedTuple):
    """A thing, as it was handed over and as it is called, and its facts."""

    thing: Any
    prepared: Any
    kind: Kind
    said: Facts
    watch: Watch

    def exercise(self, facts: Facts) -> Exercise:
        """What the thing is held to in one reading.

        Raises:
            OwnTroubleError: if that cannot be made.
        """
        try:
            return self.kind.exercise(self.prepared, facts)
        except UnclearError:
            raise
        except Exception as error:
            raise OwnTroubleError("its reference", error, self.said) from error

    def case(
        self,
        reading: Reading,
        known: Case | None = None,
        *,
        put_off: bool = False,
        name: bool = True,
    ) -> Case:
        """The thing's case in one reading.

        Args:
            reading: what is known of the thing.
            known: its case on some of the probes, which are not run again.
            put_off: whether to leave out, for now, the probes that need what
                some facts tell of: `Kind.needs_tried_last`.
            name: whether to look for the name of its mistake.
        """
        kind, said, facts = self.kind, self.said, reading.facts
        exercise = self.exercise(facts)
        code = kind.code(self.thing, facts)
        later = dict.fromkeys(kind.needs_tried_last() if put_off else (), "")
        less = reading.without(exercise.optional) | kind.excluded(said)
        required = *reading.required, *kind.asked_of(said)
        case = judge(
            Patient(self.prepared, facts, kind.adapt, self.watch, code),
            exercise,
            said={n: said[n] for n in exercise.conventions if n in said},
            required=required,
            lacks=later | less,
            known=known and known.outcomes,
            name=name,
        )
        report = as_read(
            case.report, self.thing, kind, exercise, said, reading
        )
        promised = *required, *sole_form(case.seen), *by_axes(facts)
        uncalled = all(one.outcome.uncalled for one in case.seen)
        report = report.with_(promised=promised, uncalled=uncalled)
        return case._replace(report=report)


def sole_form(seen: Sequence[Seen]) -> set[str]:
    """What each probe needs that was asked of it and that it did not refuse.

    As it can be called in no other way, such as without heads, it is no
    assumption that it is right in this one.
    """
    if not seen:
        return set()
    return set.intersection(*({*one.probe.needs} for one in seen))


def by_axes(facts: Facts) -> set[str]:
    """What a layout promises: where one letter is for heads, there are some.

    >>> by_axes({"layout": "BHND"}), by_axes({"layout": "any"})
    ({'heads'}, set())
    """
    return {"heads"} if "H" in str(facts.get("layout")) else set()


def known_best(
    visit: Visit, groups: list[list[Reading]]
) -> list[list[Reading]]:
    """The groups under which the numbers are known; all, if it is in none.

    Under a wrong reading little more than its form may be asked, and so it
    has little to fail at.
    """
    exact = [
        group
        for group in groups
        if NUMBERS not in visit.exercise(group[0].facts).optional
    ]
    return exact or groups


def grouped(kind: Kind, said: Facts, seen: Reading) -> list[list[Reading]]:
    """The ways to read a thing, by the facts that matter to most probes."""
    groups: dict[tuple[Any, ...], list[Reading]] = {}
    for reading in kind.readings(said, seen):
        groups.setdefault(kind.tried_first(reading.facts), []).append(reading)
    return list(groups.values())


Looked = list[tuple[Case, list[Reading]]]


def looked_at(visit: Visit, seen: Reading) -> Looked:
    """A thing's case in each group of ways to read it, without its name.

    A reading by which it has axes for heads, and raises wherever there are
    any, is none: what it does without them may look like anything.
    """
    looked = [
        (visit.case(group[0], put_off=True, name=False), group)
        for group in known_best(visit, grouped(visit.kind, visit.said, seen))
    ]
    return [one for one in looked if not belied_by_axes(*one)] or looked


def belied_by_axes(case: Case, group: list[Reading]) -> bool:
    """Whether it raises wherever it is called by the axes that it has."""
    axes = by_axes(group[0].facts)
    called = [o for p, o in case.outcomes.items() if axes & {*p.needs}]
    return bool(called) and all(one.error for one in called)


def read(visit: Visit, firsts: Looked) -> Iterator[Case]:
    """A thing's case in each way to read it; if it is healthy in one, that.

    What a mask says, say, matters to few probes. So the other facts are
    tried first, without those probes, and only the best are gone on with.
    Names are looked for only if it is healthy in none.
    """
    if not any(first.report.passed for first, _ in firsts):
        firsts = [
            (visit.case(g[0], one, put_off=True), g) for one, g in firsts
        ]
    best = max(likelihood(first.report) for first, _ in firsts)
    near = []
    for first, group in firsts:
        for reading in group if likelihood(first.report) == best else ():
            case = visit.case(reading, first, name=False)
            near.append((reading, case))
            if case.report.passed and not case.report.refused:
                yield case
                return
    healthy = any(case.report.passed for _, case in near)
    for reading, case in near:
        yield case if healthy else visit.case(reading, case)


def as_read(
    report: Report,
    thing: Any,
    kind: Kind,
    exercise: Exercise,
    said: Facts,
    reading: Reading,
) -> Report:
    """A report that tells what was examined, and how it was read."""
    told = {
        name: reading.facts[name]
        for name, fact in kind.facts.items()
        if fact.options
        and not report.trouble
        and reading.facts.get(name) is not None
        and name not in said
        and (fact.need or name) not in reading.lacks
    }
    not_asked = {
        exercise.optional[need]: why
        for need, why in report.not_asked.items()
        if need in (exercise.optional if why else ())
        and IMPLIED.get(need) not in report.not_asked
    }
    return report.with_(
        exercise=kind.name,
        patient=title(thing),
        facts=told,
        not_asked=not_asked,
        lacking=dict(report.not_asked),
    )


def check_takes(visit: Visit, seen: Reading) -> None:
    """Refuse a name in ``takes`` of which no reading asks anything."""
    if visit.said.get("takes") is None:
        return
    kind = visit.kind
    known = {
        need: None
        for reading in kind.readings(visit.said, seen)
        for need in visit.exercise(reading.facts).optional
        if need != UNFOUND
    }
    for name in visit.said["takes"]:
        if name not in known:
            raise RefusedError(
                f"takes must list what {kind.name!r} may take, "
                f"{', '.join(known) or 'which is nothing'}, but {name!r} is "
                "none of it"
            )


def title(thing: Any) -> str:
    """What to call a thing in a sentence: its name, or that of its class.

    It is not asked: a thing may answer with anything, or not at all.
    """
    if issubclass(type(thing), functools.partial):
        thing = thing.func
    if issubclass(type(thing), NAMED):
        return str(thing.__name__)
    try:
        name = object.__getattribute__(thing, "__dict__").get("__name__")
    except Exception:
        name = None
    return name if isinstance(name, str) else type(thing).__name__
