"""Examine anything: an answer to an exercise, or a thing of some kind."""

from functools import partial
from typing import Any

from selfattn.doctor.engine.diagnosis import diagnose
from selfattn.doctor.engine.isolation import can_fork, in_a_child
from selfattn.doctor.engine.readings import examine_here, title
from selfattn.doctor.exercises import find, unknown
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.report import Report


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


def examine(
    thing: Any,
    *,
    kind: str | None = None,
    exercise: str | None = None,
    time_limit: float | None = 20.0,
    memory_limit: float = 4e9,
    **facts: Any,
) -> Report:
    """What is wrong with a thing, as a `Report`.

    Args:
        thing: what is examined: a function, a module or a class.
        kind: what it should be, such as "attention" or "self-attention";
            `kinds` lists them all.
        exercise: or the exercise it answers, "<chapter>/<name>".
        time_limit: seconds after which it is given up. What is of some kind
            is examined in a process of its own, unless that cannot be made
            (see `can_fork`) or this is None. What answers an exercise is
            examined in this one.
        memory_limit: bytes that such a process may take besides.
        facts: what is known of it. Each kind has its own facts; those that
            are not told are found out, if the probes decide them.

    Raises:
        LookupError: if there is no such kind or exercise; it lists those
            there are.
        ValueError: if neither or both are named, or if a fact is none of
            this kind's.
    """
    if (kind is None) == (exercise is None):
        raise ValueError(
            "a patient is examined as one kind or one exercise, but "
            f"kind={kind!r} and exercise={exercise!r}"
        )
    if exercise is not None:
        return diagnose(thing, find(exercise))
    found = find_kind(str(kind))
    found.check(facts)
    if time_limit is None or not can_fork():
        return examine_here(thing, found, facts)
    return in_a_child(
        partial(examine_here, thing, found, facts),
        Report(found.name, 0, patient=title(thing)),
        time_limit,
        memory_limit,
    )
