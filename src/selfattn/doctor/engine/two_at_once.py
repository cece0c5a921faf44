"""Of two mistakes at once, the one that is to be told first."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from selfattn.doctor.engine.matching import Seen, observe_known, unlike
from selfattn.doctor.exercise import Exercise, Mistake


def first_of(found: Iterator[Mistake]) -> Iterator[Mistake]:
    """At most the first of them."""
    for one in found:
        yield one
        return


def weightier_first(
    exercise: Exercise, pair: Mistake, values: Sequence[Seen]
) -> Mistake:
    """Two mistakes, the first of them one that shows in these values.

    What fails in half precision alone, say, does not show in them.
    """
    if pair.also is None or shows(exercise, pair.name, values):
        return pair
    if not shows(exercise, pair.also.name, values):
        return pair
    return exchanged(pair, pair.also)


def exchanged(pair: Mistake, second: Mistake) -> Mistake:
    """The same two mistakes, the second of them told first."""
    return replace(second, answer=pair.answer, also=replace(pair, also=None))


def shows(exercise: Exercise, name: str, values: Sequence[Seen]) -> bool:
    """Whether a mistake of this name, alone, is wrong on some values."""
    known = (*exercise.mistakes, *exercise.deviations)
    return any(
        unlike(
            exercise, None, one.probe, observe_known(exercise, m, one.probe)
        )
        for m in known
        if m.name == name
        for one in values
        if not one.probe.convention
    )
