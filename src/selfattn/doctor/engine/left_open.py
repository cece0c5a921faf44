"""What nobody told of a thing, and by which all that it does would be right.

Who tells some facts of his patient and leaves one out is not ill by that. If
one fact more makes it right on all probes, it may be meant: it is asked
after. But only where its mistake has no name, since what is a known slip is
not taken for a design.
"""

from typing import Any

from selfattn.doctor.engine.diagnosis import Case
from selfattn.doctor.engine.isolation import Watch
from selfattn.doctor.engine.outcome import OwnTroubleError
from selfattn.doctor.engine.promises import if_meant
from selfattn.doctor.engine.visits import (
    NUMBERS,
    Visit,
    check_takes,
    looked_at,
    read,
)
from selfattn.doctor.exercise import Mistake
from selfattn.doctor.kind import TYPES, Kind, UnclearError
from selfattn.doctor.patient import Facts


def asked_after(
    case: Case, thing: Any, kind: Kind, said: Facts, watch: Watch
) -> Case | None:
    """A case that asks after one fact, if with it all would be right.

    That is soon seen, and so comes before two mistakes at once are looked
    for, which takes longest. But it comes after a reading under which less
    is asked: who is healthy in that one need not be asked after anything.
    Who told nothing is asked after what has a name if it is not meant.
    """
    report = case.report
    if report.mistake or not report.findings:
        return None
    known = {**kind.read(thing, said).facts, **report.facts, **report.assumed}
    refused = {*report.refused}
    for more in kind.perhaps(thing, {**known, **said}):
        if more.keys() & said.keys():
            continue
        if is_right(thing, kind, {**said, **more}, watch, refused):
            words = ", ".join(shown(name, x) for name, x in more.items())
            mistake = if_not_meant(words, case, kind)
            if not (said or mistake):
                continue
            asked = {"different": if_meant([words]), "mistake": mistake}
            return case._replace(report=report.with_(**asked))
    return None


def if_not_meant(words: str, case: Case, kind: Kind) -> Mistake | None:
    """The mistake that it is, unless it is meant, where that has a name."""
    known = (*case.exercise.mistakes, *case.exercise.deviations)
    named = (one for one in known if kind.meant.get(one.name) == words)
    return next(named, None)


def is_right(
    thing: Any, kind: Kind, said: Facts, watch: Watch, refused: set[str]
) -> bool:
    """Whether it is healthy, and held to numbers, if this is told of it.

    It must not refuse more than what it ``refused`` without. In types that
    it did not promise it may be as it likes.
    """
    try:
        seen = kind.read(thing, said)
        prepared = kind.prepare(thing, {**seen.facts, **said})
        visit = Visit(thing, prepared, kind, said, watch)
        check_takes(visit, seen)
        cases = [*read(visit, looked_at(visit, seen))]
    except (UnclearError, OwnTroubleError):
        return False
    return any(
        is_kept(case)
        and {*case.report.refused} <= refused
        and NUMBERS not in case.exercise.optional
        for case in cases
    )


def is_kept(case: Case) -> bool:
    """Whether it does all that is asked in number types that it promised."""
    free = {*TYPES} - {*case.report.promised}
    left = all(free & {*one.probe.needs} for one in case.report.findings)
    return case.report.passed or (left and bool(case.report.findings))


def shown(name: str, value: object) -> str:
    """A fact as it may be said; a function has no words."""
    return f"{name}=…" if callable(value) else f"{name}={value!r}"
