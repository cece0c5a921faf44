"""The visits that were asked for: of a thing, or of all that a file makes."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from selfattn.doctor.command.arguments import Request
from selfattn.doctor.command.loading import (
    load,
    load_made,
    load_module,
    with_functions,
)
from selfattn.doctor.door.functions import BY_NAME
from selfattn.doctor.door.guessing import Guess
from selfattn.doctor.door.names import says
from selfattn.doctor.door.surveying import Survey, survey
from selfattn.doctor.engine.examination import examine_made
from selfattn.doctor.kind import UNFOUND
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.report import Report

JOINED = ("encoder-block", "decoder-block")
OF_A_NAME = (
    "It has the name of one, and does something else. If it is to be one, "
    "say --kind {kind}."
)
LIKE_ONE = (
    "It does nearly what one does, and its name says nothing. If it is to be "
    "one, say --kind {kind}."
)
NORMS = ("rms-norm", "layer-norm")
GRAVEST_FIRST = (1, 2, 4, 3, 0)  # of the codes with which the command exits


class Visit(NamedTuple):
    """What is said before a report, if anything, and the report."""

    words: str
    report: Report | None


def visits(request: Request) -> Iterator[Visit]:
    """One visit for each thing that was asked for, as each is done."""
    name, kind = request.thing, request.options.kind
    if is_whole(name):
        yield from visits_of_all(request)
    elif kind is None:
        yield guessed(request, the_guess(request))
    else:
        yield as_told(request)


def is_whole(name: str) -> bool:
    """Whether a whole file is meant, and not one thing in it."""
    return name.endswith(".py")


def visits_of_all(request: Request) -> Iterator[Visit]:
    """Visits of all that a file makes, and what is left out."""
    name, facts, options = request
    found = surveyed(request)
    if found.trouble:
        yield Visit("", Report("file", 0, patient=name, trouble=found.trouble))
    elif not found.guesses:
        yield Visit(f"Nothing in {name} can be examined.", None)
    well: set[str] = set()
    for guess in found.guesses:
        one = Request(f"{name}:{guess.name}", facts, options)
        if guess.used_by and well.issuperset(guess.used_by):
            yield Visit(part_of(guess), None)
            continue
        if options.kind is not None and guess.kind:
            visit = as_told(one)
        else:
            visit = guessed(one, guess)
        if is_well(visit.report):
            well.add(guess.name)
        yield visit


def is_well(report: Report | None) -> bool:
    """Whether something is healthy, and its parts with it.

    Of a block's parts nothing is asked, only how they are joined; and who
    has a formula of its own was asked for no numbers.
    """
    if report is None or report.exercise in JOINED:
        return False
    return report.passed and report.facts.get("formula") != "own"


def part_of(guess: Guess) -> str:
    """Why a part is left out: what uses it is well."""
    whole = " and ".join(guess.used_by)
    one = len(guess.used_by) == 1
    do = "which is healthy, uses" if one else "which are healthy, use"
    return f"{guess.name} is left out: {whole}, {do} it."


def surveyed(request: Request) -> Survey:
    """What there is, and of which kind it seems to be."""
    name, _, options = request
    what = load_module if is_whole(name) else load
    limits = options.time_limit, options.memory_limit
    return survey(partial(what, name), name.rpartition(":")[2], *limits)


def the_guess(request: Request) -> Guess:
    """What one thing looks like."""
    found = surveyed(request)
    name = request.thing.rpartition(":")[2]
    why = found.trouble.removesuffix(".")
    return found.guesses[0] if found.guesses else Guess(name, "", why)


def guessed(request: Request, guess: Guess) -> Visit:
    """A visit of a thing of which nobody said what it is.

    If it looks like two kinds, the one of which more can be said; but what
    saves no work need not do so.
    """
    if not guess.kind:
        return Visit(str(guess), None)
    report = examined(request, guess.kind)
    for other in guess.others:
        if is_diagnosis(report):
            break
        second = examined(request, other)
        if second.passed or (second.likely and other != "efficient"):
            report = second
    if report.exit_code == 1 and (why := unsaid(guess, report)):
        report = report.with_(different=why.format(kind=report.exercise))
    return Visit(str(guess), report)


def unsaid(guess: Guess, report: Report) -> str:
    """Why one that is ill may be none of its kind: nobody said that it is.

    It has but the name, and no known mistake; or it is no more than like a
    norm, and has another name.
    """
    if BY_NAME in guess.why and report.mistake is None:
        return OF_A_NAME
    kind = report.exercise
    if kind in NORMS and not says(guess.name.rpartition(":")[2], kind):
        return LIKE_ONE
    return ""


def is_diagnosis(report: Report) -> bool:
    """Whether enough is known of a thing to look for no other kind of it.

    Of a healthy one whose parts are not found, too little is.
    """
    return report.likely and not (report.passed and UNFOUND in report.lacking)


def as_told(request: Request) -> Visit:
    """A visit of a thing as what it was said to be, or as what it is.

    The kind that was told is left only if nothing can be said of the thing
    as that, and it looks like another.
    """
    kind = request.options.kind
    report = examined(request, kind)
    if is_diagnosis(report):
        return Visit("", report)
    guess = the_guess(request)
    if guess.kind in ("", kind) or kind in guess.others:
        return Visit("", report)
    other = examined(request, guess.kind)
    if other.likely or report.exit_code == 2:
        return Visit(f"You said {kind}, but {guess}", other)
    return Visit(f"You said {kind}. But {guess}", report)


def examined(request: Request, kind: str) -> Report:
    """The report on one thing, as of some kind; its child imports it.

    A class that only asks how it is to be made, is made by its names.
    """
    name, facts, options = request
    of = find_kind(kind)
    for make in (load, load_made):
        report = examine_made(
            partial(make, name),
            name.rpartition(":")[2],
            of,
            with_functions(facts, of),
            options.time_limit,
            options.memory_limit,
        )
        if not report.question:
            break
    return report


def gravest(codes: list[int]) -> int:
    """Of the codes of several reports, the one to exit with; 2 if none.

    >>> gravest([0, 3, 1, 2]), gravest([0, 0]), gravest([])
    (1, 0, 2)
    """
    return next((code for code in GRAVEST_FIRST if code in codes), 2)
