"""From an answer to its diagnosis: run, compare, match, find a small input."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from selfattn.doctor.engine.allowances import (
    not_needing,
    refusals,
    without_conventions,
    without_way,
)
from selfattn.doctor.engine.evidence import hinted
from selfattn.doctor.engine.likeness import nearest
from selfattn.doctor.engine.matching import (
    Seen,
    mistake_made,
    observe_known,
    wrong_on,
)
from selfattn.doctor.engine.naming import named
from selfattn.doctor.engine.outcome import Outcome, observe, trouble_with
from selfattn.doctor.engine.shrinking import smallest_failure
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.patient import Patient
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Report


class Case(NamedTuple):
    """What an answer did, and what of it is known without further calls."""

    answer: Any
    exercise: Exercise
    seen: list[Seen]  # what counts
    report: Report
    outcomes: Mapping[Probe, Outcome]  # on every probe


def diagnose(answer: Any, exercise: Exercise) -> Report:
    """Compare an answer with a solution and with its named mistakes."""
    return explain(judge(answer, exercise))


def judge(
    answer: Any,
    exercise: Exercise,
    *,
    said: Mapping[str, str] | None = None,
    required: Sequence[str] = (),
    lacks: Mapping[str, str] | None = None,
    known: Mapping[Probe, Outcome] | None = None,
    name: bool = True,
) -> Case:
    """Run an answer on every probe, and look for the name of its mistake.

    Args:
        answer: what is to be judged.
        exercise: the solution, the probes and the mistakes.
        said: for each convention that is to be kept, which.
        required: what of the exercise's ``optional`` it must not refuse.
        lacks: what of it is not to be asked, with the reason.
        known: what it did already on some of the probes.
        name: whether to look for a name at all, and for what it refuses;
            whether it passes can be told without, and sooner.
    """
    lacks, known = dict(lacks or {}), known or {}
    asked = [p for p in exercise.probes if not lacks.keys() & p.needs]
    if failure := without_reference(exercise, asked, answer):
        return Case(answer, exercise, [], failure, {})
    outcomes = {p: known.get(p) or observe(exercise, answer, p) for p in asked}
    seen = [Seen(*pair) for pair in outcomes.items()]
    report = Report(exercise.name, len(seen), not_asked=lacks)
    if all(one.outcome.stub for one in seen):
        report = report.with_(unanswered=why_unanswered(answer))
        return Case(answer, exercise, seen, report, outcomes)
    kept, remarks = without_conventions(exercise, seen, said or {})
    report = report.with_(remarks=remarks)
    case = Case(answer, exercise, kept, report, outcomes)
    if wrong_on(exercise, kept):
        case = without(refusals(exercise, kept, required, plainly=True), case)
        case = unasked(without_way(exercise, case.seen, required), case)
    if name and wrong_on(exercise, case.seen):
        case = with_name(case, required)
    findings = tuple(wrong_on(exercise, case.seen))
    return case._replace(report=case.report.with_(findings=findings))


def without_reference(
    exercise: Exercise, asked: Sequence[Probe], answer: Any
) -> Report | None:
    """Why there is nothing to compare an answer with; None if there is.

    Whoever fails would be like a reference that fails as well, and healthy.
    """
    facts = answer.facts if isinstance(answer, Patient) else {}
    for probe in asked:
        expected = observe_known(exercise, None, probe)
        raised = expected.error or expected.gradient_error
        if raised and not probe.refused:
            trouble = (
                f"{trouble_with(facts)}: its reference raises "
                f"{raised}, where it asks whether this holds: "
                f"{probe.claim}. Of the patient, that says nothing."
            )
            return Report(exercise.name, 0, trouble=trouble)
    return None


def with_name(case: Case, required: Sequence[str]) -> Case:
    """A case with its mistake's name, if it has one.

    It is first looked for with all that was asked, then without what raises.
    """
    exercise = case.exercise
    mistake = mistake_made(exercise, case.seen)
    if mistake is None:
        case = without(refusals(exercise, case.seen, required), case)
        mistake = mistake_made(exercise, case.seen)
    mistake = None if belied(case, mistake) else mistake
    return case._replace(report=case.report.with_(mistake=mistake))


def belied(case: Case, mistake: Mistake | None) -> bool:
    """Whether what is to be seen of a patient does not bear out this name.

    Of many a name the probes alone are no evidence: others fail alike.
    """
    exercise = case.exercise
    if mistake is not None and right_but_once(case):
        return True
    unsure = mistake is not None and mistake.name in exercise.unsure
    if not (unsure and isinstance(case.answer, Patient) and exercise.signs):
        return False
    return exercise.signs(case.answer) != (mistake and mistake.name)


def right_but_once(case: Case) -> bool:
    """Whether a patient is right on one of several probes, and else raises.

    It may have been called as it should not be; and of all who raise wherever
    they have more than one head, say, many are right where they have one.
    """
    called = [one for one in case.seen if one.outcome.error is None]
    if not isinstance(case.answer, Patient) or len(case.seen) < 3:
        return False
    return len(called) == 1 and not wrong_on(case.exercise, called)


def looked_at_again(case: Case, second: bool = True) -> Case:
    """A case of a patient without a name, with one that tells most of it.

    Two mistakes at once are looked for if there is a ``second`` look.
    """
    report = case.report
    if report.mistake is not None or not report.findings:
        return case
    if isinstance(case.answer, Patient) and gives_nothing(case):
        return case  # what is told by sight alone gives nothing, too
    mistake = named(case.answer, case.exercise, case.seen, second)
    mistake = None if belied(case, mistake) else mistake
    return case._replace(report=report.with_(mistake=mistake))


def without(refused: Mapping[str, str], case: Case) -> Case:
    """A case without the probes that need what is refused, and a note why."""
    report, seen = case.report, not_needing(refused, case.seen)
    gone = {*report.refused, *refused}
    report = report.with_(
        probes=sum(not gone & {*probe.needs} for probe in case.outcomes),
        not_asked={**report.not_asked, **refused},
        refused=(*report.refused, *refused),
    )
    return case._replace(seen=seen, report=report)


def unasked(gone: set[Probe], case: Case) -> Case:
    """A case as if some probes had not been asked."""
    seen = [one for one in case.seen if one.probe not in gone]
    outcomes = {p: one for p, one in case.outcomes.items() if p not in gone}
    report = case.report.with_(probes=case.report.probes - len(gone))
    return case._replace(seen=seen, outcomes=outcomes, report=report)


def explain(case: Case) -> Report:
    """What to say of a case; most, if its mistake has no name."""
    answer, exercise, seen, report, _ = case
    if report.mistake is not None or not report.findings:
        return report
    if isinstance(answer, Patient) and gives_nothing(case):
        unanswered = why_unanswered(answer)
        return report.with_(findings=(), unanswered=unanswered)
    likeness, told = nearest(exercise, seen, report.findings)
    likeness = likeness or hinted(answer, exercise)
    # What the likeness explains is told; what it leaves is to be shown.
    rest = [found for found in report.findings if found.probe not in told]
    # What is wrong whatever one's conventions comes before what may not be.
    open_ = exercise.conventions
    firm = [f for f in rest if f.probe.convention not in open_ or f.rule]
    to_show = firm or rest or report.findings
    if isinstance(answer, Patient):  # which has many more probes
        to_show = to_show[:3]
    first, code = smallest_failure(answer, exercise, to_show)
    others = (f for f in report.findings if f.probe is not first.probe)
    return report.with_(
        findings=(first, *others),
        likeness=likeness,
        alike_on=len(told),
        snippet=code,
    )


def gives_nothing(case: Case) -> bool:
    """Whether a patient that is wrong returns None, whatever it is given.

    A layer's is looked into before it is compared, which raises.
    """
    patient, given = case.answer.recorded()
    wrong = [found.probe for found in case.report.findings]
    for probe in [*wrong, *(p for p in case.outcomes if p not in wrong)]:
        observe(case.exercise, patient, probe)
        if not all(call.gave_none for call in given):
            return False
    return bool(given)


def why_unanswered(answer: Any) -> str:
    """What to say about a stub; more, if its code does much."""
    thing = answer.thing if isinstance(answer, Patient) else answer
    called = inspect.unwrap(getattr(thing, "forward", thing))
    code = getattr(called, "__code__", None)
    if inspect.iscode(code) and "NotImplementedError" not in code.co_names:
        works = code.co_names or code.co_nlocals > (
            code.co_argcount + code.co_kwonlyargcount
        )
        if works:
            return "Not answered yet, or is a `return` missing?"
    return "Not answered yet"
