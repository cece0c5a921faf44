"""Examine anything: an answer to an exercise, or a thing of some kind."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from selfattn.doctor.diagnosis import Case, diagnose, explain, judge
from selfattn.doctor.exercise import Exercise
from selfattn.doctor.exercises import find, unknown
from selfattn.doctor.isolation import Watch, can_fork, in_a_child
from selfattn.doctor.kind import Kind, UnclearError
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.outcome import in_words
from selfattn.doctor.patient import Facts, Patient, unseen
from selfattn.doctor.report import NUMERIC, Report
from selfattn.doctor.shrinking import title


def check(answer: Any, *, exercise: str) -> None:
    """Print what is wrong with an answer to an exercise, or that nothing is.

    Args:
        answer: what the exercise asks for: the function itself, or, if it
            asks for a prediction, the value.
        exercise: its name, "<chapter>/<name>".
    """
    try:
        print(examine(answer, exercise=exercise))
    except LookupError:
        print(unknown(exercise))


def examine(
    thing: Any,
    *,
    kind: str | None = None,
    exercise: str | None = None,
    time_limit: float | None = 20.0,
    memory_limit: float = 4e9,
    **facts: Any,
) -> Report:
    """What is wrong with a thing, as a `Report`.

    Args:
        thing: what is examined: a function, a module or a class.
        kind: what it should be, such as "attention" or "self-attention";
            `kinds` lists them all.
        exercise: or the exercise it answers, "<chapter>/<name>".
        time_limit: seconds after which it is given up. What is of some kind
            is examined in a process of its own, unless that cannot be made
            (see `can_fork`) or this is None. What answers an exercise is
            examined in this one.
        memory_limit: bytes that such a process may take besides.
        facts: what is known of it. Each kind has its own facts; those that
            are not told are found out, if the probes decide them.

    Raises:
        LookupError: if there is no such kind or exercise; it lists those
            there are.
        ValueError: if neither or both are named, or if a fact is none of
            this kind's.
    """
    if (kind is None) == (exercise is None):
        raise ValueError(
            "a patient is examined as one kind or one exercise, but "
            f"kind={kind!r} and exercise={exercise!r}"
        )
    if exercise is not None:
        return diagnose(thing, find(exercise))
    found = find_kind(str(kind))
    found.check(facts)
    if time_limit is None or not can_fork():
        return examine_here(thing, found, facts)
    return in_a_child(
        partial(examine_here, thing, found, facts),
        Report(found.name, 0, patient=title(thing)),
        time_limit,
        memory_limit,
    )


def examine_here(
    thing: Any, kind: Kind, said: Facts, watch: Watch = unseen
) -> Report:
    """Examine in this process: read the thing in every way, keep the best."""
    about = Report(kind.name, 0, patient=title(thing))
    try:
        seen = kind.look(thing, said)
        known = {**seen, **said}
        report = reported(thing, kind, said, seen, watch)
        less = {} if report.likely else kind.fallback(thing, known)
        if not less:
            return report
        other = reported(thing, kind, said, {**seen, **less}, watch)
        return other if other.likely else report
    except UnclearError as unclear:
        return about.with_(question=str(unclear))
    except (Exception, SystemExit) as error:
        return about.with_(trouble=f"It raises {in_words(error)}.")


class Visit(NamedTuple):
    """A thing, as it was handed over and as it is called, and its facts."""

    thing: Any
    prepared: Any
    kind: Kind
    said: Facts
    watch: Watch

    def case(
        self,
        facts: Facts,
        known: Case | None = None,
        *,
        early: bool = False,
        names: bool = True,
    ) -> Case:
        """The thing's case in one reading.

        Args:
            facts: the reading.
            known: its case on some of the probes, which are not run again.
            early: whether to leave out the probes that need what is tried
                late.
            names: whether to look for the name of its mistake.
        """
        kind, said = self.kind, self.said
        exercise = kind.exercise(self.prepared, facts)
        lacks = lacking(exercise, facts)
        code = kind.code(self.thing, facts)
        later = dict.fromkeys(kind.late() if early else (), "")
        case = judge(
            Patient(self.prepared, facts, kind.adapt, self.watch, code),
            exercise,
            said={n: said[n] for n in exercise.conventions if n in said},
            takes=[*(facts.get("takes") or ()), *facts.get("has", ())],
            lacks=later | lacks,
            known=known and known.outcomes,
            names=names,
        )
        report = about(case.report, self.thing, kind, exercise, said, facts)
        return case._replace(report=report)


def reported(
    thing: Any, kind: Kind, said: Facts, seen: Facts, watch: Watch
) -> Report:
    """The report under the reading that makes sense of a thing."""
    prepared = kind.prepare(thing, {**seen, **said})
    visit = Visit(thing, prepared, kind, said, watch)
    return explain(decide(list(read(visit, seen)), kind))


def read(visit: Visit, seen: Facts) -> Iterator[Case]:
    """A thing's case in each way to read it; if it is healthy in one, that.

    What a mask says, say, matters to few probes. So the other facts are
    tried first, without those probes, and only the best are gone on with.
    Names are looked for only if it is healthy in none.
    """
    kind = visit.kind
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for facts in kind.readings(visit.said, seen):
        groups.setdefault(kind.early(facts), []).append(facts)
    firsts = [
        (visit.case(group[0], early=True, names=False), group)
        for group in groups.values()
    ]
    if not any(first.report.passed for first, _ in firsts):
        firsts = [(visit.case(g[0], one, early=True), g) for one, g in firsts]
    best = max(likelihood(first.report) for first, _ in firsts)
    near = []
    for first, group in firsts:
        for facts in group if likelihood(first.report) == best else ():
            case = visit.case(facts, first, names=False)
            near.append((facts, case))
            if case.report.passed and not case.report.refused:
                yield case
                return
    healthy = any(case.report.passed for _, case in near)
    for facts, case in near:
        yield case if healthy else visit.case(facts, case)


def about(
    report: Report,
    thing: Any,
    kind: Kind,
    exercise: Exercise,
    said: Facts,
    facts: Facts,
) -> Report:
    """A report that tells what was examined, and how it was read."""
    told = {
        name: facts[name]
        for name, fact in kind.facts.items()
        if fact.options
        and name in facts
        and name not in said
        and (fact.of or name) not in facts.get("lacks", {})
    }
    not_asked = {
        exercise.optional[need]: why
        for need, why in report.not_asked.items()
        if need in exercise.optional
    }
    return report.with_(
        exercise=kind.name,
        patient=title(thing),
        facts=told,
        not_asked=not_asked,
    )


def lacking(exercise: Exercise, facts: Facts) -> dict[str, str]:
    """What of an exercise's ``optional`` is not asked, and why."""
    if facts.get("takes") is None:
        return dict(facts.get("lacks", {}))
    return {
        need: "it was not said to take it"
        for need in exercise.optional
        if need not in facts["takes"]
    }


def decide(cases: Sequence[Case], kind: Kind) -> Case:
    """The case in the one reading that makes sense of a thing.

    A reading under which it is healthy makes most sense, one under which its
    mistake has a name makes more than one under which it has none. Of those,
    the one counts under which most is right. Where several are left that do
    not say the same, a fact is asked for.
    """
    most = max(likelihood(case.report) for case in cases)
    likely = [case for case in cases if likelihood(case.report) == most]
    if likely[0].report.passed:
        return likely[0]
    first = likely[0].report
    open_facts = {
        name: value
        for name, value in first.facts.items()
        if any(case.report.facts[name] != value for case in likely)
    }
    if len({verdict(case.report) for case in likely}) > 1:
        question = ask(open_facts, kind)
        unclear = first.with_(findings=(), mistake=None, question=question)
        return likely[0]._replace(report=unclear)
    decided = {n: x for n, x in first.facts.items() if n not in open_facts}
    report = first.with_(facts=decided, assumed=open_facts)
    return likely[0]._replace(report=report)


def likelihood(report: Report) -> tuple[int, ...]:
    """How well a reading fits, to be compared with that of others.

    Under a wrong reading, shapes seldom fit. So wrong numbers of the right
    shape speak for a reading, too.
    """
    kinds = [finding.difference.kind for finding in report.findings]
    near = sum(kind in {*NUMERIC, "modifies"} for kind in kinds)
    verdict = 2 * report.passed + (report.mistake is not None)
    if report.passed:
        return (verdict, -len(report.refused))
    return (verdict, report.probes - len(kinds), near)


def verdict(report: Report) -> tuple[object, ...]:
    """What a report says, so that two can be compared."""
    if report.mistake is not None:
        return (report.mistake.name,)
    return tuple((f.probe.asks, f.difference.kind) for f in report.findings)


def ask(facts: Facts, kind: Kind) -> str:
    """Which fact is needed, and what it may be."""
    wanted = [
        f"{name}, {kind.facts[name].says}: "
        + " or ".join(
            f"{x!r} ({w})" for x, w in kind.facts[name].options.items()
        )
        for name in facts
    ]
    return (
        "It fails, and how depends on how it is to be called. Say "
        f"{'; and '.join(wanted)}."
    )
