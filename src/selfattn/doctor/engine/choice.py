"""Of all the ways to read a thing, the one that makes sense of it."""

from collections.abc import Sequence

from selfattn.doctor.engine.diagnosis import Case
from selfattn.doctor.kind import Kind
from selfattn.doctor.patient import Facts
from selfattn.doctor.report import Report
from selfattn.doctor.report.record import NUMERIC


def decide(cases: Sequence[Case], kind: Kind) -> Case:
    """The case in the one reading that makes sense of a thing.

    A reading under which it is healthy makes most sense, one under which its
    mistake has a name makes more than one under which it has none. Of those,
    the one counts under which most is right. Where several are left that
    have other names for its mistake, a fact is asked for; if it is ill under
    each and has a name under none, one is taken.
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
    names = {
        case.report.mistake and case.report.mistake.name for case in likely
    }
    if len(names) > 1:
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
    if report.trouble:
        return (-1,)
    sorts = [finding.difference.sort for finding in report.findings]
    near = sum(sort in {*NUMERIC, "modifies"} for sort in sorts)
    verdict = 2 * report.passed + (report.mistake is not None)
    if report.passed:
        return (verdict, -len(report.refused))
    return (verdict, report.probes - len(sorts), near)


def ask(facts: Facts, kind: Kind) -> str:
    """Which fact is needed, and what it may be."""
    wanted = [
        f"{name}, {kind.facts[name].meaning}: "
        + " or ".join(
            f"{x!r} ({w})" for x, w in kind.facts[name].options.items()
        )
        for name in facts
    ]
    return (
        "It fails, and how depends on how it is to be called. Say "
        f"{'; and '.join(wanted)}."
    )
