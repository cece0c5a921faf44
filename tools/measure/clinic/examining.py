"""One visit to the doctor, and what is written down of it."""

import time
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from selfattn.doctor import examine
from selfattn.doctor.kinds import find_kind
from tools.measure.clinic.by_hand.written import formula_of
from tools.measure.clinic.drawing import Case
from tools.measure.clinic.patients import Patient, Style, patient

NAMES = tomllib.loads(
    (Path(__file__).resolve().parent / "names.toml").read_text("utf-8")
)
LIMIT = 30.0  # seconds for a visit, which is more than the doctor's own limit

BESIDE = "; "  # between the names of two mistakes at once


class Visit(NamedTuple):
    """What came of one visit."""

    kind: str
    style: str
    operators: tuple[str, ...]
    place: tuple[int, ...]
    told: str  # "the facts", also "… and the formula", "nothing", "all but …"
    outcome: str  # healthy, ill, asks, trouble
    name: str  # of the mistake, or of both; "" if none was named
    sure: bool  # whether it is the mistake, and not just like it
    wordless: tuple[str, ...]  # facts that the doctor has no word for
    seconds: float
    words: str  # the report's beginning
    shown: bool = False  # whether it shows what does not hold, or names it
    own: bool = False  # whether its formula is none that the doctor knows

    @property
    def right(self) -> bool:
        """Whether its name, of two the first, is of what was planted.

        Of two that were planted at once one will do.
        """
        first, _, _ = self.name.partition(BESIDE)
        return any(first in NAMES.get(o, ()) for o in self.operators)


def ways(case: Case, made: Patient) -> list[str]:
    """What the doctor is told of a patient, each way a visit.

    What may be somebody's convention is no mistake of one of whom nothing is
    told. Those that are sound come with each fact left out, too; and those
    whose formula is their own are told with it, as it is written by hand.
    """
    usual = ["the facts", "nothing"]
    if formula_of(case.style, made) is not None:
        usual.insert(0, FORMULA)
    if case.operators:
        return [
            way for way in usual if not case.convention or way != "nothing"
        ]
    less = [f"all but {name}" for name in made.facts if name not in NEEDED]
    return [*usual, *less]


FORMULA = "the facts and the formula"
NEEDED = ("call", "table", "dtypes")  # nobody could do without these


def told(
    made: Patient, style: Style, way: str
) -> tuple[dict[str, Any], list[str]]:
    """The facts that are told, and those for which there is no word."""
    if way == "nothing":
        return {}, []
    kind = style.kind
    facts = {n: x for n, x in made.facts.items() if way != f"all but {n}"}
    checks = find_kind(kind)
    said, wordless = {}, []
    for name, value in facts.items():
        try:
            checks.check({name: value})
            said[name] = value
        except (ValueError, TypeError):
            wordless.append(name)
    if way == FORMULA:
        said["formula"] = formula_of(style, made)
    return said, wordless


def visit(case: Case, way: str) -> Visit:
    """Take a patient to the doctor."""
    healthy = patient(case.style.text)
    made = patient(case.text, "patient")
    kind = case.style.kind
    said, wordless = told(healthy, case.style, way)
    start = time.perf_counter()
    report = examine(made.thing, kind=kind, time_limit=LIMIT, **said)
    seconds = time.perf_counter() - start
    found = report.mistake or report.likeness
    both = [one.name for one in (found, found and found.also) if one]
    return Visit(
        kind,
        case.style.name,
        case.operators,
        case.place,
        way,
        outcome(report),
        BESIDE.join(both),
        report.mistake is not None,
        tuple(wordless),
        round(seconds, 2),
        " ".join(str(report).split())[:300],
        bool(report.findings or found),
        healthy.facts.get("formula") == "own",
    )


def outcome(report: Any) -> str:
    """What a report comes to, in a word."""
    if report.passed:
        return "healthy"
    if report.question or report.unanswered:
        return "asks"
    if report.different or report.untried:
        return "asks"
    if report.trouble:
        return "trouble"
    return "ill"
