"""Examine a thing of some kind in every way that it may be read."""

import functools
from collections.abc import Callable
from typing import Any

from selfattn.doctor.engine.choice import decide, likelihood
from selfattn.doctor.engine.diagnosis import (
    Case,
    explain,
    looked_at_again,
)
from selfattn.doctor.engine.isolation import RefusedError, Stage, Watch
from selfattn.doctor.engine.left_open import asked_after
from selfattn.doctor.engine.outcome import OwnTroubleError, in_words
from selfattn.doctor.engine.promises import FINE, weighed
from selfattn.doctor.engine.visits import (
    NUMBERS,
    Visit,
    check_takes,
    grouped,
    looked_at,
    read,
    title,
)
from selfattn.doctor.kind import (
    Kind,
    Reading,
    UnclearError,
    nothing_else,
)
from selfattn.doctor.patient import Facts, unseen
from selfattn.doctor.report import Report

FIRST = Stage("as it was called to see what it takes")
AS_SEEN = "as seen"  # a function that was read off, in words
AGAIN = 3  # readings in which a name is looked for by deviations


def examine_here(
    thing: Any, kind: Kind, said: Facts, watch: Watch = unseen
) -> Report:
    """Examine in this process: read the thing in every way, keep the best."""
    nothing_found = Report(kind.name, 0, patient=title(thing))
    if kind.whole is not None:
        found: Report = kind.whole(thing, facts=said, watch=watch)
        return found
    try:
        watch(FIRST)
        return best_of(thing, kind, said, watch)
    except RefusedError:
        raise
    except UnclearError as unclear:
        return nothing_found.with_(question=str(unclear))
    except OwnTroubleError as own:
        return nothing_found.with_(trouble=str(own))
    except (Exception, SystemExit) as error:
        return nothing_found.with_(trouble=f"It raises {in_words(error)}.")


def best_of(thing: Any, kind: Kind, said: Facts, watch: Watch) -> Report:
    """The report on a thing, as it is read, or read with less asked of it."""
    seen = kind.read(thing, said)
    fallback = functools.cache(lambda: kind.fallback(thing, said, seen))
    begin = functools.partial(begun, thing, kind, said, watch)
    # What is found in a thing is found once, whoever asks.
    begin_less = functools.cache(lambda: begin(fallback() or seen))
    visit = begin(seen)
    firsts = looked_at(visit, seen)
    healthy = any(first.report.passed for first, _ in firsts)
    if not healthy and "formula" in kind.facts:
        own = by_numbers(begin_less, fallback())
        if own is not None:
            return own
    cases = list(read(visit, firsts))
    # Two mistakes at once take longest: what is asked first comes first.
    at_once = functools.cache(
        lambda: kind.perhaps is nothing_else and fallback() is None
    )
    case = decide(named_at_last(cases, at_once), kind)
    if not (said or case.report.passed):
        case = as_it_seems(case, thing, kind, watch) or case
    # What is said of it takes long to find, and may not be wanted.
    said_of_it = functools.cache(lambda: weighed(explain(case), kind, said))
    if case.report.passed or case.report.mistake is not None or at_once():
        return said_of_it()
    less = fallback()
    # Who is right on most probes has no other formula.
    mostly = 2 * len(case.report.findings) >= case.report.probes
    if less is not None and mostly and is_unclear(said_of_it()):
        report = with_less_asked(begin_less(), less, cases)
        if report.likely:
            return report
    asks = asked_after(decide(cases, kind), thing, kind, said, watch)
    return asked_or_named(asks, said_of_it, cases, kind, said)


def with_less_asked(visit: Visit, less: Reading, cases: list[Case]) -> Report:
    """The report on a thing of which ``less`` is asked.

    Of what is left out of a formula, who looks at what moves sees something,
    too: without a softmax, say, a key that is hidden by a number is heard all
    the louder. So if numbers have a name for the ``cases``, it comes first.
    """
    kind = visit.kind
    case = chosen([*read(visit, looked_at(visit, less))], kind)
    if is_seen_alone(case):
        named = chosen(cases, kind)
        case = case if named.report.mistake is None else named
    return weighed(explain(case), kind, visit.said)


def as_it_seems(
    case: Case, thing: Any, kind: Kind, watch: Watch
) -> Case | None:
    """The case of a thing by what it claims to all appearance.

    That is what others claim, too, if it is healthy by that. None, if it
    claims nothing, or its numbers then are like nobody's, too.
    """
    if kind.claims is nothing_else:
        return None
    report, plain = case.report, kind.read(thing, {})
    less = kind.fallback(thing, {}, plain)
    if less is not None:
        visit = begun(thing, kind, {}, watch, less)
        usual = decide([*read(visit, looked_at(visit, less))], kind)
        if usual.report.passed:
            return usual
    known = {**plain.facts, **report.facts, **report.assumed}
    for more in kind.claims(thing, known):
        seen = kind.read(thing, more).with_facts(**more)
        visit = begun(thing, kind, {}, watch, seen)
        other = chosen([*read(visit, looked_at(visit, seen))], kind)
        if other.report.passed or other.report.mistake is not None:
            read_off = {
                n: AS_SEEN if callable(x) else x for n, x in more.items()
            }
            facts = {**other.report.facts, **read_off}
            return other._replace(report=other.report.with_(facts=facts))
    return None


def is_unclear(report: Report) -> bool:
    """Whether it is answered, and wrong, and like nothing that is known."""
    return bool(report.findings) and not report.likely


def asked_or_named(
    asks: Case | None,
    otherwise: Callable[[], Report],
    cases: list[Case],
    kind: Kind,
    said: Facts,
) -> Report:
    """What is said at last of one that no reading makes sense of.

    That is what it ``asks`` after, or else two mistakes at once; if it has
    neither, what is said of it ``otherwise``, without a name.
    """
    if asks is not None:
        return explain(asks)
    named = chosen(cases, kind)
    if named.report.mistake is None:
        return otherwise()
    return weighed(explain(named), kind, said)


def begun(
    thing: Any, kind: Kind, said: Facts, watch: Watch, seen: Reading
) -> Visit:
    """A thing's visit, as it is called in these ways to read it."""
    prepared = kind.prepare(thing, {**seen.facts, **said})
    visit = Visit(thing, prepared, kind, said, watch)
    check_takes(visit, seen)
    return visit


def by_numbers(
    begin: Callable[[], Visit], less: Reading | None
) -> Report | None:
    """The report of one that is healthy by a formula of its own.

    That is soon seen, if the numbers of the formula are known; and then it
    need not be compared with what all others are.
    """
    if less is None or NUMBERS not in less.lacks:
        return None
    visit = begin()
    kind, said = visit.kind, visit.said
    for group in grouped(kind, said, less):
        if NUMBERS in visit.exercise(group[0].facts).optional:
            continue  # its properties alone are known
        first = visit.case(group[0], put_off=True, name=False)
        for reading in group if first.report.passed else ():
            case = visit.case(reading, first, name=False)
            if case.report.passed and not case.report.refused:
                return weighed(explain(case), kind, said)
    return None


def chosen(cases: list[Case], kind: Kind) -> Case:
    """The case that makes sense of a thing, with two mistakes if need be."""
    return decide(named_at_last(cases, lambda: True), kind)


def is_seen_alone(case: Case) -> bool:
    """Whether a name was found by what moves what, and by no number."""
    named = case.report.mistake is not None
    return named and NUMBERS in case.exercise.optional


def named_at_last(cases: list[Case], second: Callable[[], bool]) -> list[Case]:
    """The cases; the likeliest, if they have no name, looked at again.

    That takes longer than all else, so it is done for a few readings alone.
    """
    most = max(likelihood(case.report) for case in cases)
    likely = [case for case in cases if likelihood(case.report) == most]
    if likely[0].report.passed or likely[0].report.mistake is not None:
        return cases
    again = [
        looked_at_again(case, second())
        for case in unlike_first(likely)[:AGAIN]
    ]
    named = [case for case in again if case.report.mistake is not None]
    same = [case for case in named if how(case) == how(named[0])]
    return same or hidden_by_less(cases, likely[0]) or likely


def unlike_first(cases: list[Case]) -> list[Case]:
    """Some cases, of which those come first that fail in other ways.

    Readings may differ in what hardly any probe asks for, such as what a mask
    says; to look at three of these is to look at one.
    """
    ways = [how(case) for case in cases]
    later = [ways[:i].count(way) for i, way in enumerate(ways)]
    return [cases[i] for i in sorted(range(len(cases)), key=later.__getitem__)]


def how(case: Case) -> str:
    """How a case that is wrong fails first; "" if nothing was asked."""
    return next((f.difference.sentence for f in case.report.findings), "")


def hidden_by_less(cases: list[Case], likeliest: Case) -> list[Case]:
    """What hides keys by too small a number, of what seemed to be added.

    As -inf stays -inf, however it is multiplied, such a mask looks like one
    that is added, until finite numbers are in it.
    """
    if not adds_otherwise(likeliest):
        return []
    others = [
        case
        for case in sorted(
            cases, key=lambda one: likelihood(one.report), reverse=True
        )
        if not (adds_otherwise(case) or case.report.refused)
    ]
    again = [looked_at_again(case, second=False) for case in others[:AGAIN]]
    return [case for case in again if case.report.mistake is not None][:1]


def adds_otherwise(case: Case) -> bool:
    """Whether all that is wrong is what a number in a mask adds."""
    return all(FINE & {*f.probe.needs} for f in case.report.findings)
