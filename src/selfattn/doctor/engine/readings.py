"""Examine a thing of some kind in every way that it may be read."""

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from selfattn.doctor.engine.choice import decide, likelihood
from selfattn.doctor.engine.diagnosis import (
    Case,
    explain,
    judge,
    looked_at_again,
)
from selfattn.doctor.engine.isolation import RefusedError, Stage, Watch
from selfattn.doctor.engine.outcome import OwnTroubleError, in_words
from selfattn.doctor.engine.promises import FINE, weighed
from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import IMPLIED, Kind, Reading, UnclearError
from selfattn.doctor.patient import Facts, Patient, unseen
from selfattn.doctor.report import Report

FIRST = Stage("as it was called to see what it takes")
AGAIN = 3  # readings in which a name is looked for by deviations
NAMED = (
    type,
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
)


def examine_here(
    thing: Any, kind: Kind, said: Facts, watch: Watch = unseen
) -> Report:
    """Examine in this process: read the thing in every way, keep the best."""
    nothing_found = Report(kind.name, 0, patient=title(thing))
    if kind.whole is not None:
        found: Report = kind.whole(thing, facts=said, watch=watch)
        return found
    try:
        watch(FIRST)
        return of_readings(thing, kind, said, watch)
    except RefusedError:
        raise
    except UnclearError as unclear:
        return nothing_found.with_(question=str(unclear))
    except OwnTroubleError as own:
        return nothing_found.with_(trouble=str(own))
    except (Exception, SystemExit) as error:
        return nothing_found.with_(trouble=f"It raises {in_words(error)}.")


def of_readings(thing: Any, kind: Kind, said: Facts, watch: Watch) -> Report:
    """The report on a thing, as it is read, or read with less asked of it."""
    seen = kind.read(thing, said)
    fallback = functools.cache(lambda: kind.fallback(thing, said, seen))
    cases = gathered(thing, kind, said, seen, watch)
    report = reported(cases, kind, said, lambda: fallback() is None)
    less = None if report.likely else fallback()
    if less is None:
        return report
    # Who is right on most probes has no other formula.
    if 2 * len(report.findings) >= report.probes:
        others = gathered(thing, kind, said, less, watch)
        other = reported(others, kind, said)
        if other.likely:
            return other
    named = decide(named_at_last(cases, lambda: True), kind)
    if named.report.mistake is None:
        return report
    return weighed(explain(named), kind, said)


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
            raise OwnTroubleError("its reference", error) from error

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
        return case._replace(report=report.with_(promised=required))


def gathered(
    thing: Any, kind: Kind, said: Facts, seen: Reading, watch: Watch
) -> list[Case]:
    """The cases of a thing, in the readings that come into question."""
    prepared = kind.prepare(thing, {**seen.facts, **said})
    visit = Visit(thing, prepared, kind, said, watch)
    check_takes(visit, seen)
    return list(read(visit, seen))


def reported(
    cases: list[Case],
    kind: Kind,
    said: Facts,
    second: Callable[[], bool] = lambda: True,
) -> Report:
    """The report under the reading that makes sense of a thing.

    Two mistakes at once are looked for if there is a ``second`` look, which
    takes longest; so it comes last.
    """
    case = decide(named_at_last(cases, second), kind)
    return weighed(explain(case), kind, said)


def named_at_last(cases: list[Case], second: Callable[[], bool]) -> list[Case]:
    """The cases; the likeliest, if they have no name, looked at again.

    That takes longer than all else, so it is done for a few readings alone.
    """
    most = max(likelihood(case.report) for case in cases)
    likely = [case for case in cases if likelihood(case.report) == most]
    if likely[0].report.passed or likely[0].report.mistake is not None:
        return cases
    again = [looked_at_again(case, second()) for case in likely[:AGAIN]]
    named = [case for case in again if case.report.mistake is not None]
    return named or hidden_by_less(cases, likely[0]) or likely


def hidden_by_less(cases: list[Case], likeliest: Case) -> list[Case]:
    """What hides keys by too small a number, of what seemed to be added.

    As -inf stays -inf, however it is multiplied, such a mask looks like one
    that is added, until finite numbers are in it.
    """
    if not adds_otherwise(likeliest):
        return []
    others = [
        case
        for case in sorted(
            cases, key=lambda one: likelihood(one.report), reverse=True
        )
        if not (adds_otherwise(case) or case.report.refused)
    ]
    again = [looked_at_again(case, second=False) for case in others[:AGAIN]]
    return [case for case in again if case.report.mistake is not None][:1]


def adds_otherwise(case: Case) -> bool:
    """Whether all that is wrong is what a number in a mask adds."""
    return all(FINE & {*f.probe.needs} for f in case.report.findings)


def read(visit: Visit, seen: Reading) -> Iterator[Case]:
    """A thing's case in each way to read it; if it is healthy in one, that.

    What a mask says, say, matters to few probes. So the other facts are
    tried first, without those probes, and only the best are gone on with.
    Names are looked for only if it is healthy in none.
    """
    kind = visit.kind
    groups: dict[tuple[Any, ...], list[Reading]] = {}
    for reading in kind.readings(visit.said, seen):
        groups.setdefault(kind.tried_first(reading.facts), []).append(reading)
    firsts = [
        (visit.case(group[0], put_off=True, name=False), group)
        for group in groups.values()
    ]
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
        and name in reading.facts
        and name not in said
        and (fact.need or name) not in reading.lacks
    }
    not_asked = {
        exercise.optional[need]: why
        for need, why in report.not_asked.items()
        if need in exercise.optional
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
