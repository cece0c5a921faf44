"""What an answer did, beside what the solution and every mistake do."""

import functools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from selfattn.doctor.engine.comparison import difference, is_finite
from selfattn.doctor.engine.outcome import Outcome, observe
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Difference, Finding


class Seen(NamedTuple):
    """A probe, and what the answer did on it."""

    probe: Probe
    outcome: Outcome
    rule: Mistake | None = None  # the convention it is held to, if not ours


def wrong_on(exercise: Exercise, seen: Sequence[Seen]) -> list[Finding]:
    """The probes on which an answer is not what the solution is."""
    return [
        Finding(probe, found, rule)
        for probe, outcome, rule in seen
        if (found := unlike(exercise, rule, probe, outcome))
    ]


def mistake_made(exercise: Exercise, seen: Sequence[Seen]) -> Mistake | None:
    """The mistake that an answer agrees with on every probe, if it is one.

    Where it is wrong, few mistakes agree with it: they are asked there first.
    """
    wrong = {finding.probe for finding in wrong_on(exercise, seen)}
    if not wrong:
        return None
    # Whoever fails everywhere is like all who do, which says nothing.
    if all(one.outcome.error is not None for one in seen):
        return None
    telling = sorted(seen, key=lambda one: one.probe not in wrong)
    told = {one.rule.name for one in seen if one.rule}  # meant to be so
    for mistake in exercise.mistakes:
        if mistake.name not in told and agrees_on(exercise, mistake, telling):
            return mistake
    return None


def unlike(
    exercise: Exercise, known: Mistake | None, probe: Probe, outcome: Outcome
) -> Difference | None:
    """In what an outcome differs from a mistake's or, if None, solution's.

    Gradients cost most, and few mistakes come so far that these must tell.
    Where a convention is another's, they depend on what a row is filled
    with, and how: they need but be finite.
    """
    if probe.gradient and known is not None:
        expected = observe_known(exercise, known, probe, gradient=False)
        found = difference(outcome.forwards, expected, probe.tolerance)
        if found is not None or (probe.convention and flow(outcome)):
            return found
    expected = observe_known(exercise, known, probe)
    return difference(outcome, expected, probe.tolerance)


def flow(outcome: Outcome) -> bool:
    """Whether gradients came to all inputs, and are finite."""
    came = [g is not None and is_finite(g) for g in outcome.gradients.values()]
    return all(came) and outcome.gradient_error is None


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
    exercise: Exercise,
    seen: Sequence[Seen],
    findings: Sequence[Finding],
    known: Iterable[Mistake],
) -> tuple[Mistake | None, list[Probe]]:
    """The mistake that accounts for most failures, and on which probes.

    Two mistakes at once are common, and then no single one agrees with the
    answer everywhere. A likeness must agree wherever the answer is right,
    and on at least half of the probes where it is wrong.

    Args:
        exercise: what was asked.
        seen: what the answer did.
        findings: where it is wrong.
        known: the mistakes to compare with.
    """
    failures = {finding.probe for finding in findings}
    best: Mistake | None = None
    most: list[Probe] = []
    for mistake in known:
        told = told_by(exercise, mistake, seen, failures)
        if len(told) > len(most):
            best, most = mistake, told
    return best, most


def told_by(
    exercise: Exercise,
    mistake: Mistake,
    seen: Sequence[Seen],
    failures: Collection[Probe],
) -> list[Probe]:
    """The failures that a mistake accounts for; none, if it is no likeness."""
    told, left = [], len(failures) // 2
    for one in sorted(seen, key=lambda one: one.probe not in failures):
        failed = one.probe in failures
        if agrees(exercise, mistake, *one[:2]):
            if failed and one.outcome.error:
                return []
            told += [one.probe] if failed else []
        elif not failed or not left:
            return []
        else:
            left -= 1
    return told
