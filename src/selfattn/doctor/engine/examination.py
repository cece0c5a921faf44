"""Examine anything: an answer to an exercise, or a thing of some kind."""

import numbers
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from selfattn.doctor.copying import left_as_it_is
from selfattn.doctor.engine.called_parts import looked_into
from selfattn.doctor.engine.diagnosis import diagnose
from selfattn.doctor.engine.isolation import (
    RefusedError,
    Watch,
    can_fork,
    in_a_child,
    place,
)
from selfattn.doctor.engine.modes import no_modes
from selfattn.doctor.engine.originals import known, replaced
from selfattn.doctor.engine.outcome import in_words
from selfattn.doctor.engine.readings import title
from selfattn.doctor.engine.written_formulas import as_was_told
from selfattn.doctor.exercise import Exercise, check_docstrings
from selfattn.doctor.exercises import find, unknown
from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.patient import (
    Facts,
    as_used,
    in_float32,
    made_of_nothing,
    numberless,
    unasked,
    unseen,
)
from selfattn.doctor.plain_weights import with_plain_weights
from selfattn.doctor.report import Report
from selfattn.doctor.report.output import any_encoding
from selfattn.doctor.report.progress import Progress
from selfattn.signatures import shown

Lent = Callable[[Any], AbstractContextManager[Any]]


def check(answer: Any, *, exercise: str) -> None:
    """Print what is wrong with an answer to an exercise, or that nothing is.

    Args:
        answer: what the exercise asks for: the function itself, or, if it
            asks for a prediction, the value.
        exercise: its name, "<chapter>/<name>".
    """
    with any_encoding():
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
    memory_limit: float | None = 4e9,
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
        memory_limit: bytes that such a process may take besides; None for
            as many as there are.
        facts: what is known of it. Each kind has its own facts; those that
            are not told are found out, if the probes decide them. They are
            promises; a number type is one only if ``dtypes`` or ``takes``
            names it.

    Raises:
        LookupError: if there is no such kind or exercise; it lists those
            there are.
        ValueError: if neither or both are named, if a fact is none of this
            kind's, or if a limit is not above 0.
    """
    check_one(kind, exercise)
    if exercise is not None:
        if facts:
            raise ValueError(
                "facts must be those of a kind, and an exercise has none, "
                f"but here are {', '.join(facts)}"
            )
        return examine_answer(thing, find(exercise))
    return examine_made(
        lambda watch: thing,
        title(thing),
        find_kind(kind if isinstance(kind, str) else shown(kind)),
        facts,
        time_limit,
        memory_limit,
    )


def examine_answer(answer: Any, exercise: Exercise) -> Report:
    """Examine what answers an exercise, in this process."""
    try:
        with no_modes():
            return diagnose(answer, exercise)
    except Exception as error:  # to look at it, even, raises one
        trouble = f"It raises {in_words(error)} as it is looked at."
        return Report(exercise.name, 0, trouble=trouble)


def check_one(kind: str | None, exercise: str | None) -> None:
    """Raise unless one of them is named, and the doctor has its words."""
    check_docstrings()
    if (kind is None) == (exercise is None):
        raise ValueError(
            "a patient is examined as one kind or one exercise, but "
            f"kind={shown(kind)} and exercise={shown(exercise)}"
        )


def examine_made(
    make: Callable[[Watch], Any],
    name: str,
    kind: Kind,
    facts: Facts,
    time_limit: float | None,
    memory_limit: float | None,
) -> Report:
    """Examine a thing that is made where it is examined, as `examine` does.

    Args:
        make: makes it, such as by importing it; may tell at what it is.
        name: what to call it if that comes to nothing.
        kind: what it should be.
        facts: what is known of it.
        time_limit: as for `examine`.
        memory_limit: as for `examine`.
    """
    facts = with_names(kind.check(facts))
    check_limits(time=time_limit, memory=memory_limit)

    def work(watch: Watch = unseen, lent: Lent = nullcontext) -> Report:
        originals = known()
        with no_modes(), lent(make(watch)) as thing:
            thing = as_examined(thing, kind)
            if words := unfit(thing, kind) or replaced(originals):
                return nothing_found.with_(trouble=words)
            found = as_was_told(thing, kind, facts, watch)
            found = looked_into(found, thing, kind, facts)
        words = replaced(originals)  # it may do so as it is called, too
        return nothing_found.with_(trouble=words) if words else found

    nothing_found = Report(kind.name, 0, patient=name)
    if time_limit is not None and can_fork():
        return in_a_child(work, nothing_found, time_limit, memory_limit)
    try:
        with Progress() as progress:
            # Only here, for a child has a copy of everything.
            return work(lambda at: progress.tell(place(at, "")), left_as_it_is)
    except RefusedError:
        raise
    except (Exception, SystemExit) as error:  # in making it
        return nothing_found.with_(trouble=f"It raises {in_words(error)}.")


def as_examined(thing: Any, kind: Kind) -> Any:
    """A thing as one of its kind is used; of a class, perhaps one of it."""
    thing = as_used(thing) if kind.as_used else made_of_nothing(thing)
    thing = with_plain_weights(thing)
    return in_float32(thing) if kind.whole is None else thing


def unfit(thing: Any, kind: Kind) -> str:
    """Why nothing can be said of a thing that has no numbers, or that is not
    called as its kind is.
    """
    missing = numberless(thing)
    if not missing and kind.whole is None:
        missing = unasked(thing)
    return f"Nothing can be said: {missing}." if missing else ""


def check_limits(**limits: float | None) -> None:
    """Raise unless each is a number above 0, or None."""
    for what, limit in limits.items():
        if not (limit is None or is_positive(limit)):
            raise ValueError(
                f"{what}_limit must be a number above 0, or None for no "
                f"limit, but it is {shown(limit)}"
            )


def with_names(facts: Facts) -> Facts:
    """The facts, with a list of names in the place of a single one."""
    if facts.get("takes") is None:
        return facts
    return {**facts, "takes": names_in(facts["takes"])}


def names_in(takes: Any) -> list[str]:
    """The names that were said in ``takes``; a single one needs no list."""
    if isinstance(takes, str):
        return [takes]
    listed = isinstance(takes, list | tuple | set | frozenset)
    if not (listed and all(isinstance(name, str) for name in takes)):
        raise ValueError(f"takes must list names, but it is {shown(takes)}")
    return list(takes)


def is_positive(limit: object) -> bool:
    """Whether something is a number above 0; infinity is, NaN is not."""
    number = isinstance(limit, numbers.Real) and not isinstance(limit, bool)
    return number and limit > 0  # type: ignore[operator]
