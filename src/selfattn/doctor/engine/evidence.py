"""The name of what an answer does, by what is to be seen of it.

A sign, a hint or a probe that fails may be the evidence of one mistake, where
numbers alone are none.
"""

from collections.abc import Sequence
from typing import Any

from selfattn.doctor.engine.by_itself import fault
from selfattn.doctor.engine.matching import Seen
from selfattn.doctor.exercise import Exercise, Mistake


def given_away(answer: Any, exercise: Exercise) -> Mistake | None:
    """The mistake of which a sign is the evidence."""
    known = (*exercise.mistakes, *exercise.deviations)
    sign = exercise.signs(answer) if exercise.signs else ""
    return next((one for one in known if one.name == sign), None)


def told_by_a_probe(
    exercise: Exercise, seen: Sequence[Seen]
) -> Mistake | None:
    """The mistake of which a probe that fails is the evidence.

    It may fail by another one as well; so this comes last. What changes its
    input gives nothing else away, nor does whoever raises, or mostly gives
    another shape.
    """
    known = {m.name: m for m in (*exercise.mistakes, *exercise.deviations)}
    told = None
    for one in seen:
        if told or one.outcome.error is not None:
            continue
        found = fault(exercise, one) if one.probe.tells in known else None
        if found is not None and found.sort != "modifies":
            told = known[one.probe.tells]
    return None if told is None or mostly_reshaped(exercise, seen) else told


def mostly_reshaped(exercise: Exercise, seen: Sequence[Seen]) -> bool:
    """Whether what is wrong is mostly that it comes out in another shape."""
    faults = [found for one in seen if (found := fault(exercise, one))]
    other = sum(found.sort == "shape" for found in faults)
    return 2 * other > len(faults)


def hinted(answer: Any, exercise: Exercise) -> Mistake | None:
    """What is to be seen of an answer whose numbers are like nobody's."""
    if exercise.hint is None:
        return None
    try:
        name = exercise.hint(answer)
    except Exception:
        return None  # it fails at what it is asked, which is told elsewhere
    known = (*exercise.mistakes, *exercise.deviations)
    return next((one for one in known if one.name == name), None)
