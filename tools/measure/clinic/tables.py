"""Tables of what came of all visits, with intervals."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from tools.measure.clinic.examining import Visit

Z = 1.96  # of a normal, for 95 %


def wilson(hits: int, of: int) -> list[float]:
    """Wilson's interval of a rate, 95 %.

    >>> wilson(0, 10), wilson(5, 10)
    ([0.0, 0.278], [0.237, 0.763])
    """
    if not of:
        return [0.0, 1.0]
    rate, square = hits / of, Z * Z
    centre = rate + square / (2 * of)
    reach = Z * math.sqrt(rate * (1 - rate) / of + square / (4 * of * of))
    low, high = (
        (centre + sign * reach) / (1 + square / of) for sign in (-1, 1)
    )
    return [round(max(0.0, low), 3), round(min(1.0, high), 3)]


def share(visits: Sequence[Visit], what: Callable[[Visit], bool]) -> dict:
    """How many of some visits are so, with the interval of the rate."""
    hits = sum(map(what, visits))
    of = len(visits)
    return {"n": hits, "of": of, "interval": wilson(hits, of)}


Sound = dict[tuple[str, str, str], str]


def sound(visits: Sequence[Visit]) -> Sound:
    """What was said of each sound style, by what was told of it."""
    return {
        (v.kind, v.style, v.told): v.outcome for v in visits if not v.operators
    }


def of_the_ill(visits: Sequence[Visit], said: Sound) -> dict[str, Any]:
    """What became of those with a mistake.

    To call all patients ill is no art: told apart is one whose sound style,
    asked after in the same way, was not called ill.
    """
    known = [v for v in visits if (v.kind, v.style, v.told) in said]
    return {
        "found": share(visits, lambda v: v.outcome == "ill"),
        "told apart": share(
            known,
            lambda v: (
                v.outcome == "ill" and said[v.kind, v.style, v.told] != "ill"
            ),
        ),
        "named right": share(visits, lambda v: v.right),
        "surely named wrong": share(visits, lambda v: v.sure and not v.right),
        "shown, and asked": share(visits, shown_and_asked),
        "called healthy": share(visits, lambda v: v.outcome == "healthy"),
    }


def shown_and_asked(visit: Visit) -> bool:
    """Whether it is told what does not hold, and asked if that is meant."""
    return visit.outcome == "asks" and visit.shown


def of_the_sound(visits: Sequence[Visit]) -> dict[str, Any]:
    """What became of those without."""
    return {
        "false alarms": share(visits, lambda v: v.outcome == "ill"),
        "refused": share(visits, lambda v: v.outcome in ("asks", "trouble")),
    }


def seconds(visits: Sequence[Visit]) -> dict[str, float]:
    """How long visits took: the median, and what one in a hundred passes."""
    times = sorted(visit.seconds for visit in visits) or [0.0]
    last = times[min(len(times) - 1, math.ceil(0.99 * len(times)))]
    return {"median": round(median(times), 2), "99 %": round(last, 2)}


def tables(visits: Sequence[Visit]) -> dict[str, Any]:
    """All tables: in all, and by kind, style and operator."""
    whole: dict[str, Any] = {}
    said = sound(visits)
    for condition, chosen in conditions(visits).items():
        with_one = [v for v in chosen if v.operators]
        without = [v for v in chosen if not v.operators]
        whole[condition] = {
            "all": row(chosen, said),
            "by formula": grouped(chosen, by_formula, said),
            "by kind": grouped(chosen, lambda v: [v.kind], said),
            "by style": grouped(
                chosen, lambda v: [f"{v.kind}/{v.style}"], said
            ),
            "by operator": {
                name: of_the_ill(group, said)
                for name, group in groups(with_one, by_operator).items()
            },
            "visits": len(with_one) + len(without),
        }
    return whole


def by_formula(visit: Visit) -> list[str]:
    """Whether the doctor can know its numbers.

    Of one whose formula is its own it knows only what holds of all: who
    sees whom, and what moves with what.
    """
    return ["its own" if visit.own else "one the doctor knows"]


def by_operator(visit: Visit) -> list[str]:
    """The operators that made a patient ill."""
    return list(visit.operators)


FACTS, WITH_IT = "told the facts", "told the formula, too"


def conditions(visits: Sequence[Visit]) -> dict[str, list[Visit]]:
    """Visits by what the doctor was told."""
    found: dict[str, list[Visit]] = {}
    for name, holds in (
        (FACTS, lambda way: way == "the facts"),
        ("the kind alone", lambda way: way == "nothing"),
        (WITH_IT, lambda way: way.endswith("and the formula")),
        ("one fact left out", lambda way: way.startswith("all but")),
    ):
        found[name] = [visit for visit in visits if holds(visit.told)]
    told = {planted(visit) for visit in found[WITH_IT]}
    found["the same, not told it"] = [
        visit for visit in found[FACTS] if planted(visit) in told
    ]
    return found


def planted(visit: Visit) -> tuple[Any, ...]:
    """What tells a patient from others, whatever was told of it."""
    return visit.kind, visit.style, visit.operators, visit.place


def row(visits: Sequence[Visit], said: Sound) -> dict[str, Any]:
    """One row of a table."""
    made: dict[str, Any] = {}
    with_one = [v for v in visits if v.operators]
    without = [v for v in visits if not v.operators]
    if with_one:
        made |= of_the_ill(with_one, said)
    if without:
        made |= of_the_sound(without)
    return made | {"seconds": seconds(visits)}


def groups(
    visits: Sequence[Visit], of: Callable[[Visit], list[str]]
) -> dict[str, list[Visit]]:
    """Visits by a word each, sorted."""
    found: dict[str, list[Visit]] = defaultdict(list)
    for visit in visits:
        for name in of(visit):
            found[name].append(visit)
    return dict(sorted(found.items()))


def grouped(
    visits: Sequence[Visit], of: Callable[[Visit], list[str]], said: Sound
) -> dict[str, Any]:
    """Rows by a word each."""
    found = groups(visits, of)
    return {name: row(group, said) for name, group in found.items()}
