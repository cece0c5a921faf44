"""From an answer to its diagnosis: run, compare, match, find a small input."""

import functools
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

from selfattn.doctor.comparison import Difference, difference
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.exercises import find, unknown
from selfattn.doctor.outcome import Outcome, observe
from selfattn.doctor.probes import Probe
from selfattn.doctor.report import Finding, Report, snippet


class Seen(NamedTuple):
    """A probe, and what the answer did on it."""

    probe: Probe
    outcome: Outcome


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


def examine(answer: Any, *, exercise: str) -> Report:
    """What is wrong with an answer to an exercise, as a `Report`.

    Args:
        answer: what the exercise asks for.
        exercise: its name, "<chapter>/<name>".

    Raises:
        LookupError: if there is no such exercise; it lists those there are.
    """
    return diagnose(answer, find(exercise))


def diagnose(answer: Any, exercise: Exercise) -> Report:
    """Compare an answer with a solution and with its named mistakes."""
    seen = [Seen(p, observe(exercise, answer, p)) for p in exercise.probes]
    findings = [
        Finding(probe, wrong)
        for probe, outcome in seen
        if (wrong := unlike(exercise, None, probe, outcome))
    ]
    name, n = exercise.name, len(seen)
    if all(outcome.stub for _, outcome in seen):
        return Report(name, n, unanswered=why_unanswered(answer))
    if not findings:
        return Report(name, n)
    # Whoever fails everywhere is like all who do, which says nothing.
    if any(outcome.error is None for _, outcome in seen):
        for mistake in exercise.mistakes:
            if all(agrees(exercise, mistake, *one) for one in seen):
                return Report(name, n, tuple(findings), mistake=mistake)
    likeness, told = most_alike(exercise, seen, findings)
    # What the likeness explains is told; what it leaves is to be shown.
    rest = [finding for finding in findings if finding.probe not in told]
    first, code = smallest_failure(answer, exercise, rest or findings)
    others = (f for f in findings if f.probe is not first.probe)
    return Report(
        name,
        n,
        (first, *others),
        likeness=likeness,
        agrees=len(told),
        snippet=code,
    )


def unlike(
    exercise: Exercise, known: Mistake | None, probe: Probe, outcome: Outcome
) -> Difference | None:
    """In what an outcome differs from a mistake's or, if None, solution's."""
    expected = observe_known(exercise, known, probe)
    return difference(outcome, expected, probe.tolerance)


def agrees(
    exercise: Exercise, mistake: Mistake, probe: Probe, outcome: Outcome
) -> bool:
    """Whether an answer did on a probe what a mistake does."""
    return unlike(exercise, mistake, probe, outcome) is None


@functools.lru_cache(maxsize=10_000)
def observe_known(
    exercise: Exercise, known: Mistake | None, probe: Probe
) -> Outcome:
    """What a mistake or, if None, the solution does; it is run but once."""
    answer = exercise.solution if known is None else known.answer
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
        alike = [one.probe for one in seen if agrees(exercise, mistake, *one)]
        told = [probe for probe in alike if probe in wrong]
        failed = [p for p, o in seen if o.error is not None and p in told]
        agrees_elsewhere = len(alike) - len(told) == len(seen) - len(wrong)
        if failed or not agrees_elsewhere or 2 * len(told) < len(wrong):
            continue
        if len(told) > len(most):
            best, most = mistake, told
    return best, most


def smallest_failure(
    answer: Any, exercise: Exercise, findings: Sequence[Finding]
) -> tuple[Finding, str]:
    """Shrink every failing input; return the smallest, and code to see it."""
    best: tuple[int, Finding, str] | None = None
    for finding in findings:
        sizes, found = shrink(answer, exercise, finding)
        inputs = finding.probe.make(**sizes)
        count = sum(getattr(x, "nbytes", 0) for x in inputs.values())
        if best is None or count < best[0]:
            code = snippet(inputs, exercise.by_name, name_of(answer), found)
            best = count, Finding(finding.probe, found), code
    if best is None:
        raise ValueError("there must be a failure to shrink, but none is")
    return best[1:]


def shrink(
    answer: Any, exercise: Exercise, finding: Finding
) -> tuple[dict[str, int], Difference]:
    """Make axes shorter, one by one, as long as it fails in the same way."""
    probe, found = finding.probe, finding.difference
    sizes = probe.axes()
    for axis, full in sizes.items():
        for size in range(1, full):
            smaller = sizes | {axis: size}
            still = difference(
                observe(exercise, answer, probe, **smaller),
                observe(exercise, exercise.solution, probe, **smaller),
                probe.tolerance,
            )
            if still is not None and still.kind == found.kind:
                sizes, found = smaller, still
                break
    return sizes, found


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


def name_of(answer: Any) -> str:
    """What to call the answer in code."""
    name = getattr(answer, "__name__", None)
    usable = isinstance(name, str) and name.isidentifier()
    return str(name) if usable else "answer"
