"""Whose promise a patient broke: his own, or one that nobody made.

Who tells nothing has promised what can be read off him, and no more: that
half precision will do, say, or that the scale is the usual one, is assumed.
What breaks an assumed promise alone is different from the usual, which may be
meant. Who tells something of his patient is held to all that is usual and
that he did not except.
"""

from selfattn.doctor.exercise import Mistake
from selfattn.doctor.kind import TYPES as NAMES
from selfattn.doctor.kind import Kind
from selfattn.doctor.patient import Facts
from selfattn.doctor.report import Finding, Report
from selfattn.doctor.report.record import NUMERIC

TYPES = set(NAMES)
AXES = {"batches", "heads"}  # which one may add by a loop
FINE = {"finite"}  # who hides with -inf need not add before he scales


def weighed(report: Report, kind: Kind, said: Facts) -> Report:
    """A report that tells broken promises from what was only assumed."""
    if report.passed:
        return report.with_(untried=untried(report, kind, said))
    if said or not report.findings:
        return report
    return report.with_(different=different(report, kind))


def untried(report: Report, kind: Kind, said: Facts) -> str:
    """What was told, and could not be tried; "" if there is no such thing.

    Who says what his patient takes has not promised what he leaves out, even
    if he says how it would be meant.
    """
    needs = {n: kind.facts[n].need for n in said if n in kind.facts}
    takes = said.get("takes")
    gone = [
        name
        for name, need in needs.items()
        if need in report.lacking and (takes is None or need in takes) and need
    ]
    if not gone:
        return ""
    return (
        f"You told {' and '.join(gone)}, but I find no way to try it: "
        f"{report.lacking[needs[gone[0]]]}. Say under which name it is to be "
        "handed over, with names=…."
    )


def different(report: Report, kind: Kind) -> str:
    """Which usual thing it is not, if it broke no promise of its own."""
    mistake = report.mistake
    facts = [kind.meant.get(one.name, "") for one in each(mistake)]
    if mistake is not None and all(facts):
        words = " and ".join(facts)
        return f"Nobody said that it should be. If it is meant, say {words}."
    types = TYPES if mistake is not None else TYPES | AXES | FINE
    shared, types = common(report), types - set(report.promised)
    if all(shared or types & needs(found) for found in report.findings):
        claims = "; ".join(f.probe.claim for f in report.findings[:3])
        return (
            f"Nobody promised this: {claims}. If it should hold, name it in "
            "takes=[…] or dtypes=[…]; if it need not, tell what holds."
        )
    if mistake is None and kind.meant:
        sorts = {f.difference.sort for f in report.findings}
        if sorts <= NUMERIC - {"nan"}:
            return (
                "Its numbers are those of no formula that I know, right or "
                "wrong. If it has one of its own, say which facts are its "
                "own: --list has them."
            )
    return ""


def each(mistake: Mistake | None) -> list[Mistake]:
    """A mistake, or the two that it is; nothing, if there is none."""
    if mistake is None:
        return []
    return [mistake] if mistake.also is None else [mistake, mistake.also]


def needs(found: Finding) -> set[str]:
    """What a probe that failed asks for besides."""
    return set(found.probe.needs)


def common(report: Report) -> set[str]:
    """What all that failed ask for, and what is neither told nor seen."""
    shared = set.intersection(*map(needs, report.findings))
    return shared - set(report.promised)
