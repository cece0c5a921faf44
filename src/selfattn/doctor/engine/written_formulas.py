"""Hold a thing to a formula that was told as a function.

What moves what is asked first, as of any that has a formula of its own: that
tells how it is read, and needs no numbers. Then the numbers decide.
"""

from dataclasses import replace
from typing import Any

from torch import Tensor

from selfattn.doctor.engine.diagnosis import (
    explain,
    judge,
    looked_at_again,
)
from selfattn.doctor.engine.isolation import Watch
from selfattn.doctor.engine.matching import observe_known
from selfattn.doctor.engine.outcome import Outcome
from selfattn.doctor.engine.promises import weighed
from selfattn.doctor.engine.readings import examine_here
from selfattn.doctor.engine.visits import NUMBERS, Visit, as_read
from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Kind, Reading, UnclearError
from selfattn.doctor.patient import Facts, Patient, unseen
from selfattn.doctor.report import Report

OWN = {"formula": "own"}
ILL = 1


def as_was_told(
    thing: Any, kind: Kind, said: Facts, watch: Watch = unseen
) -> Report:
    """Examine a thing, by its formula if that was told as a function."""
    if not callable(said.get("formula")):
        return examine_here(thing, kind, said, watch)
    seen = examine_here(thing, kind, {**said, **OWN}, watch)
    if seen.question or seen.trouble or seen.unanswered:
        return seen
    try:
        told = held(thing, kind, said, seen, watch)
    except UnclearError as unclear:
        return seen.with_(findings=(), different="", question=str(unclear))
    if told.passed:
        return joined(seen, told)
    return told if told.likely else told.with_(likeness=seen.mistake)


def held(
    thing: Any, kind: Kind, said: Facts, seen: Report, watch: Watch
) -> Report:
    """The report on a thing by the numbers of its formula alone."""
    reading = as_it_was_read(thing, kind, said, seen)
    facts = {**reading.facts, "formula": said["formula"]}
    visit = Visit(thing, kind.prepare(thing, facts), kind, said, watch)
    exercise = visit.exercise(facts)
    lacks = reading.without(exercise.optional) | kind.excluded(said)
    lacks.pop(NUMBERS, None)
    exercise = as_far_as_it_goes(exercise, lacks)
    code = kind.code(thing, facts)
    required = (*reading.required, *kind.asked_of(said))
    case = judge(
        Patient(visit.prepared, facts, kind.adapt, watch, code),
        exercise,
        required=required,
        lacks=lacks,
    )
    report = as_read(case.report, thing, kind, exercise, said, reading)
    case = case._replace(report=report.with_(promised=required))
    case = looked_at_again(case, second=False)
    return weighed(explain(case), kind, said)


def as_far_as_it_goes(exercise: Exercise, lacks: dict[str, str]) -> Exercise:
    """An exercise without what the formula has no answer to, and a note why.

    It may take no mask, say, which its layer takes.

    Args:
        exercise: what the formula is the solution of.
        lacks: what is not asked, with the reason; more is added.

    Raises:
        UnclearError: if it raises on what any layer is called with.
    """
    kept = []
    for probe in exercise.probes:
        if lacks.keys() & {*probe.needs}:
            continue
        known = observe_known(exercise, None, probe)
        raised = known.error or ""
        why = raised if known.unusable else f"your formula raises {raised}"
        if overflows(known) and not probe.needs:
            continue  # of a slow version nobody asks how it is rounded
        if not raised:
            flows = known.gradient_error is None
            kept.append(probe if flows else replace(probe, gradient=False))
        elif probe is exercise.probes[0]:
            raise UnclearError(
                f"{why[:1].upper()}{why[1:]}. It is called with the "
                "layer, and then with all that the layer is called with."
            )
        elif probe.needs:
            lacks[probe.needs[-1]] = why
    return replace(exercise, probes=tuple(kept))


def overflows(known: Outcome) -> bool:
    """Whether a formula gives numbers that are none, of loud tokens, say."""
    value = known.value
    return isinstance(value, Tensor) and not bool(value.isfinite().all())


def as_it_was_read(
    thing: Any, kind: Kind, said: Facts, seen: Report
) -> Reading:
    """The reading by which a thing was seen to move what it should."""
    found = {**seen.facts, **seen.assumed}
    known = {n: x for n, x in found.items() if n in kind.facts}
    told = {**known, **said, **OWN}
    return next(kind.readings(told, kind.read(thing, told)))


def joined(seen: Report, told: Report) -> Report:
    """The report on one that is right by its formula, and what was seen."""
    if not seen.passed and seen.exit_code == ILL:
        return seen  # what moves that must not is wrong by any formula
    both = {**seen.not_asked, **told.not_asked}
    asked = {n: why for n, why in both.items() if n != "its numbers"}
    return told.with_(
        probes=seen.probes + told.probes, facts=seen.facts, not_asked=asked
    )
