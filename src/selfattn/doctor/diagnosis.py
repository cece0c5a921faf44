"""From an answer to its diagnosis: run, compare, match, find a small input."""

import functools
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from selfattn.doctor.comparison import Difference, difference
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.outcome import Outcome, observe
from selfattn.doctor.patient import Patient
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Finding, Report
from selfattn.doctor.shrinking import smallest_failure


class Seen(NamedTuple):
    """A probe, and what the answer did on it."""

    probe: Probe
    outcome: Outcome
    rule: Mistake | None = None  # the convention it is held to, if not ours


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
    takes: Sequence[str] = (),
    lacks: Mapping[str, str] | None = None,
    known: Mapping[Probe, Outcome] | None = None,
    names: bool = True,
) -> Case:
    """Run an answer on every probe, and look for the name of its mistake.

    Args:
        answer: what is to be judged.
        exercise: the solution, the probes and the mistakes.
        said: for each convention that is to be kept, which.
        takes: what of the exercise's ``optional`` it must do, and not refuse.
        lacks: what of it is not to be asked, with the reason.
        known: what it did already on some of the probes.
        names: whether to look for a name at all, and for what it refuses;
            whether it passes can be told without, and sooner.
    """
    lacks, known = dict(lacks or {}), known or {}
    asked = [p for p in exercise.probes if not lacks.keys() & p.needs]
    outcomes = {p: known.get(p) or observe(exercise, answer, p) for p in asked}
    seen = [Seen(*pair) for pair in outcomes.items()]
    report = Report(exercise.name, len(seen), not_asked=lacks)
    if all(one.outcome.stub for one in seen):
        report = report.with_(unanswered=why_unanswered(answer))
        return Case(answer, exercise, seen, report, outcomes)
    counted, remarks = without_conventions(exercise, seen, said or {})
    report = report.with_(remarks=remarks)
    case = Case(answer, exercise, counted, report, outcomes)
    if wrong(exercise, counted):
        case = without(refusals(exercise, counted, takes, plainly=True), case)
    if names and wrong(exercise, case.seen):
        case = with_name(case, takes)
    findings = tuple(wrong(exercise, case.seen))
    return case._replace(report=case.report.with_(findings=findings))


def with_name(case: Case, takes: Sequence[str]) -> Case:
    """A case with its mistake's name, if it has one.

    It is first looked for with all that was asked, then without what raises.
    """
    exercise = case.exercise
    mistake = named(exercise, case.seen)
    if mistake is None:
        case = without(refusals(exercise, case.seen, takes), case)
        mistake = named(exercise, case.seen)
    return case._replace(report=case.report.with_(mistake=mistake))


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


def not_needing(needs: Mapping[str, str], seen: Sequence[Seen]) -> list[Seen]:
    """Those that need none of these."""
    return [one for one in seen if not needs.keys() & one.probe.needs]


def explain(case: Case) -> Report:
    """What to say of a case; most, if its mistake has no name."""
    answer, exercise, seen, report, _ = case
    if report.mistake is not None or not report.findings:
        return report
    likeness, told = most_alike(exercise, seen, report.findings)
    # What the likeness explains is told; what it leaves is to be shown.
    rest = [found for found in report.findings if found.probe not in told]
    # What is wrong whatever one's conventions comes before what may not be.
    firm = [f for f in rest if not f.probe.convention or f.rule]
    to_show = firm or rest or report.findings
    if isinstance(answer, Patient):  # which has many more probes
        to_show = to_show[:3]
    first, code = smallest_failure(answer, exercise, to_show)
    others = (f for f in report.findings if f.probe is not first.probe)
    return report.with_(
        findings=(first, *others),
        likeness=likeness,
        agrees=len(told),
        snippet=code,
    )


def wrong(exercise: Exercise, seen: Sequence[Seen]) -> list[Finding]:
    """The probes on which an answer is not what the solution is."""
    return [
        Finding(probe, found, rule)
        for probe, outcome, rule in seen
        if (found := unlike(exercise, rule, probe, outcome))
    ]


def named(exercise: Exercise, seen: Sequence[Seen]) -> Mistake | None:
    """The mistake that an answer agrees with on every probe, if it is one."""
    if not wrong(exercise, seen):
        return None
    # Whoever fails everywhere is like all who do, which says nothing.
    if all(one.outcome.error is not None for one in seen):
        return None
    for mistake in exercise.mistakes:
        if agrees_on(exercise, mistake, seen):
            return mistake
    return None


def without_conventions(
    exercise: Exercise, seen: Sequence[Seen], said: Mapping[str, str]
) -> tuple[list[Seen], tuple[Mistake, ...]]:
    """Set aside the probes on which a convention is kept, but not ours.

    Returns:
        The probes that are left, and the mistakes that are conventions of
        the answer. Where a convention was said, no other one will do.
    """
    left, kept = list(seen), []
    for fact, ways in exercise.conventions.items():
        asked = [one for one in seen if one.probe.convention == fact]
        known = [m for m in exercise.mistakes if m.name in ways.values()]
        if fact in said:
            rules = [m for m in known if m.name == ways[said[fact]]]
            rule = rules[0] if rules else None
            held = {one.probe: one._replace(rule=rule) for one in asked}
            left = [held.get(one.probe, one) for one in left]
        elif wrong(exercise, asked):
            found = [m for m in known if agrees_on(exercise, m, asked)]
            if found:
                kept.append(found[0])
                left = [one for one in left if one not in asked]
    return left, tuple(kept)


def refusals(
    exercise: Exercise,
    seen: Sequence[Seen],
    takes: Sequence[str],
    plainly: bool = False,
) -> dict[str, str]:
    """What an answer refuses: it raises wherever a probe needs it.

    ``plainly``: it cannot even be called that way, as no mistake would say.
    """
    refused: dict[str, str] = {}
    for need in exercise.optional:
        needing = [s.outcome for s in seen if need in s.probe.needs]
        raised = [why_not(outcome) for outcome in needing]
        if plainly and not all(outcome.unusable for outcome in needing):
            continue
        if needing and all(raised) and need not in takes:
            refused[need] = raised[0]
    others = [s for s in seen if not refused.keys() & s.probe.needs]
    if all(one.outcome.error for one in others):
        return {}  # it raises whatever it is asked
    return refused


def why_not(outcome: Outcome) -> str:
    """Why there is no outcome to speak of, or nothing if there is."""
    error = outcome.error or outcome.gradient_error or ""
    return error if outcome.unusable or not error else f"it raises {error}"


def unlike(
    exercise: Exercise, known: Mistake | None, probe: Probe, outcome: Outcome
) -> Difference | None:
    """In what an outcome differs from a mistake's or, if None, solution's.

    Gradients cost most, and few mistakes come so far that these must tell.
    """
    if probe.gradient and known is not None:
        plain = replace(outcome, gradients={}, gradient_error=None)
        expected = observe_known(exercise, known, probe, gradient=False)
        found = difference(plain, expected, probe.tolerance)
        if found is not None:
            return found
    expected = observe_known(exercise, known, probe)
    return difference(outcome, expected, probe.tolerance)


def agrees_on(
    exercise: Exercise, mistake: Mistake, seen: Sequence[Seen]
) -> bool:
    """Whether an answer did what a mistake does on all of these probes."""
    return all(agrees(exercise, mistake, *one[:2]) for one in seen)


def agrees(
    exercise: Exercise, mistake: Mistake, probe: Probe, outcome: Outcome
) -> bool:
    """Whether an answer did on a probe what a mistake does."""
    return unlike(exercise, mistake, probe, outcome) is None


@functools.lru_cache(maxsize=20_000)
def observe_known(
    exercise: Exercise,
    known: Mistake | None,
    probe: Probe,
    gradient: bool = True,
) -> Outcome:
    """What a mistake or, if None, the solution does; it is run but once."""
    answer = exercise.solution if known is None else known.answer
    if not gradient:
        probe = replace(probe, gradient=False)
    return observe(exercise, answer, probe)


def most_alike(
    exercise: Exercise, seen: Sequence[Seen], findings: Sequence[Finding]
) -> tuple[Mistake | None, list[Probe]]:
    """The mistake that accounts for most failures, and on which probes.

    Two mistakes at once are common, and then no single one agrees with the
    answer everywhere. A likeness must agree wherever the answer is right,
    and on at least half of the probes where it is wrong.
    """
    wrong = [finding.probe for finding in findings]
    best: Mistake | None = None
    most: list[Probe] = []
    for mistake in exercise.mistakes:
        alike = [s.probe for s in seen if agrees(exercise, mistake, *s[:2])]
        told = [probe for probe in alike if probe in wrong]
        failed = [s.probe for s in seen if s.outcome.error and s.probe in told]
        agrees_elsewhere = len(alike) - len(told) == len(seen) - len(wrong)
        if failed or not agrees_elsewhere or 2 * len(told) < len(wrong):
            continue
        if len(told) > len(most):
            best, most = mistake, told
    return best, most


def why_unanswered(answer: Any) -> str:
    """What to say about a stub; more, if it is a function that does much."""
    code = getattr(answer, "__code__", None)
    if inspect.iscode(code) and "NotImplementedError" not in code.co_names:
        works = code.co_names or code.co_nlocals > (
            code.co_argcount + code.co_kwonlyargcount
        )
        if works:
            return "Not answered yet, or is a `return` missing?"
    return "Not answered yet"
