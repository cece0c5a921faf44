"""Does the doctor catch every mistake it knows? The tests, and a page, ask."""

from itertools import combinations

from selfattn.doctor.engine.diagnosis import diagnose, judge
from selfattn.doctor.engine.matching import agrees, observe_known
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.exercises import find, names
from selfattn.doctor.kind import Kind, Reading
from selfattn.doctor.kinds import kinds
from selfattn.doctor.report.progress import Progress

PASSED = "(passed)"
UNNAMED = "(unnamed)"


def survival() -> dict[str, dict[str, str]]:
    """For every exercise and every mistake in its bank: what it was called.

    Returns:
        Exercise name → mistake name → the name that the doctor gave it,
        `PASSED` if it took the mistake for the solution, or `UNNAMED`.
    """
    given = {}
    with Progress() as progress:
        for name in names():
            progress.tell(f"at the exercise {name}")
            given[name] = names_given(find(name))
    return given


def confusion() -> dict[str, dict[str, str]]:
    """The same for every kind, under all the claims that it may be held to."""
    return {name: names_given(exercise) for name, exercise in banks().items()}


def banks() -> dict[str, Exercise]:
    """The exercises that are the ground of every kind, by its name.

    Where a kind has several, for what a thing claims, each has a label.
    """
    found = {}
    for name, kind in sorted(kinds().items()):
        for label in kind.examples():
            whole = f"{name}, {label}" if label else name
            found[whole] = bank(kind, label)
    return found


def bank(kind: Kind, label: str | None = None) -> Exercise:
    """The exercise that a kind is held to, for one of its examples."""
    listed = kind.examples()
    thing, said = listed[next(iter(listed)) if label is None else label]
    if thing is None:
        return kind.exercise(None, next(kind.readings(said, Reading())).facts)
    seen = kind.read(thing, said)
    prepared = kind.prepare(thing, {**seen.facts, **said})
    return kind.exercise(prepared, next(kind.readings(said, seen)).facts)


def names_given(exercise: Exercise) -> dict[str, str]:
    """For every mistake of one exercise: what the doctor called it."""
    given = {}
    for mistake in exercise.mistakes:
        seen = {
            p: observe_known(exercise, mistake, p) for p in exercise.probes
        }
        said = ours(exercise)
        report = judge(mistake.answer, exercise, said=said, known=seen).report
        named = UNNAMED if report.mistake is None else report.mistake.name
        given[mistake.name] = PASSED if report.passed else named
    return given


def ours(exercise: Exercise) -> dict[str, str]:
    """The solution's own conventions, so that no other one will do."""
    return {fact: next(iter(w)) for fact, w in exercise.conventions.items()}


def complaints(exercise: Exercise) -> list[str]:
    """All that is wrong with an exercise; nothing, if it may be published."""
    found = []
    report = diagnose(exercise.solution, exercise)
    if not report.passed:
        found.append(f"its own solution does not pass: {report}")
    at_least = 4 if exercise.predicted else 8
    if len(exercise.mistakes) < at_least:
        found.append(
            f"it must name at least {at_least} mistakes, but it names "
            f"{len(exercise.mistakes)}"
        )
    for mistake in exercise.mistakes:
        if not (mistake.symptom and mistake.cause and mistake.cure):
            found.append(f"“{mistake.name}” lacks symptom, cause or cure")
    for name, given in names_given(exercise).items():
        if given != name:
            found.append(f"“{name}” is called {given}")
    for one, other in combinations(exercise.mistakes, 2):
        if twins(one, other, exercise):
            found.append(
                f"“{one.name}” and “{other.name}” agree on every probe"
            )
    return [f"{exercise.name}: {complaint}" for complaint in found]


def twins(one: Mistake, other: Mistake, exercise: Exercise) -> bool:
    """Whether no probe tells two mistakes apart."""
    return all(
        agrees(exercise, one, probe, observe_known(exercise, other, probe))
        for probe in exercise.probes
    )
