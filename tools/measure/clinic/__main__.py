"""Let the doctor examine strangers, sound and ill, and count what it says.

    python -m tools.measure.clinic                    2,000 visits
    python -m tools.measure.clinic --visits 200       fewer
    python -m tools.measure.clinic --minutes 30       until time is up
    python -m tools.measure.clinic --half tune --show each miss, in words
    python -m tools.measure.clinic --seed 7           other draws
    python -m tools.measure.clinic --half tune --kinds softmax rope

The tables go to ``book/measurements/clinic.json``. They are of the styles to
measure on, and hold no single visit, so that nobody tunes the doctor on them;
the other half may be shown, and is not written down. A run that was broken
off goes on where it was: what was examined with this doctor is known.
"""

import argparse
import json
import re
import time
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from random import Random

import torch

from tools.measure.clinic.drawing import (
    STORE,
    Case,
    fingerprint,
    ill,
    sound,
)
from tools.measure.clinic.examining import Visit, visit, ways
from tools.measure.clinic.patients import ROOT, patient
from tools.measure.clinic.tables import tables
from tools.measure.provenance import RESULTS, provenance

PATH = RESULTS / "clinic.json"
EACH = 2  # visits of the ill before one of a sound one
AHEAD = 4  # visits begun for each process, while others are drawn
DOCTOR = ROOT / "src" / "selfattn" / "doctor"


def planned(chosen: argparse.Namespace) -> Iterator[tuple[Case, str]]:
    """All visits, in the order in which they are made.

    The sound ones stand among the ill, so that a run that is cut short has
    seen some of each; those of which one fact is not told come last.
    """
    well = [
        (case, way)
        for case in sound(chosen.half, chosen.kinds)
        for way in ways(case, patient(case.text))
    ]
    draw = Random(chosen.seed)
    draw.shuffle(well)
    well.sort(key=lambda one: one[1].startswith("all but"), reverse=True)
    n = 0
    cases = ill(chosen.half, chosen.seed, chosen.twice, chosen.kinds)
    for case in cases:
        for way in ways(case, patient(case.style.text)):
            yield case, way
            n += 1
            if n % EACH == 0 and well:
                yield well.pop()
    yield from reversed(well)


def examined(chosen: argparse.Namespace) -> list[Visit]:
    """Make all visits, or those for which there is time, some at once."""
    path = STORE / f"visits-{fingerprint([*DOCTOR.rglob('*.py')])}"
    done = read(path)
    end = time.monotonic() + 60 * chosen.minutes
    visits: list[Visit] = []
    waiting: deque[tuple[str, Future[Visit]]] = deque()

    def take() -> None:
        """The visit that was begun first, when it is over."""
        key, made = waiting.popleft()
        if key not in done:
            done[key] = made.result()
            write(path, key, done[key])
        visits.append(done[key])
        if chosen.show and wrong(done[key]):
            print(f"{key}\n    {done[key].outcome}: {done[key].words}\n")

    with ProcessPoolExecutor(chosen.processes, initializer=quiet) as rooms:
        for case, way in islice(planned(chosen), chosen.visits):
            if time.monotonic() > end:
                break
            key = f"{case.name} | {way} | {case.mark}"
            known = Future() if key in done else rooms.submit(visit, case, way)
            waiting.append((key, known))
            if len(waiting) > AHEAD * chosen.processes:
                take()
        while waiting:
            take()
    return visits


def quiet() -> None:
    """One thread, and nothing but what is asked for."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")


def read(path) -> dict[str, Visit]:
    """The visits that are known."""
    if not path.exists():
        return {}
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return {line[0]: restored(line[1]) for line in lines}


def restored(values: list) -> Visit:
    """A visit as it was written down."""
    visit = Visit(*values)
    return visit._replace(
        operators=tuple(visit.operators),
        place=tuple(visit.place),
        wordless=tuple(visit.wordless),
    )


def write(path, key: str, made: Visit) -> None:
    """Write down one visit more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps([key, list(made)]) + "\n")


def wrong(visit: Visit) -> bool:
    """Whether what it said is not what one would wish."""
    if visit.operators:
        return visit.outcome != "ill" or not visit.right
    return visit.outcome != "healthy"


def main() -> None:
    """Examine, count, and write down."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--visits", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--twice", type=float, default=0.1)
    parser.add_argument(
        "--half", choices=("tune", "measure", "both"), default="measure"
    )
    parser.add_argument("--kinds", nargs="*", default=())
    parser.add_argument("--show", action="store_true")
    chosen = parser.parse_args()
    quiet()
    if chosen.show and chosen.half != "tune":
        parser.error("only the half to tune on is shown: --half tune --show")
    if chosen.kinds and chosen.half == "measure":
        parser.error("of the half to measure on, all kinds are measured")
    visits = examined(chosen)
    found = tables(visits)
    for name, table in found.items():
        print(name, json.dumps(table["all"]))
    if chosen.half == "measure":
        write_down(chosen, found, len(visits))


def write_down(chosen: argparse.Namespace, found: dict, visits: int) -> None:
    """Write the tables, with where they come from."""
    whole = {
        "about": "What the doctor says of code that it has never met: the "
        "styles that nobody who works on it has read.",
        "command": f"python -m tools.measure.clinic --visits {visits}",
        "provenance": provenance(),
        "seed": chosen.seed,
        "visits": visits,
        "styles": {half: len(sound(half)) for half in ("tune", "measure")},
        "tables": found,
    }
    text = json.dumps(whole, indent=1, ensure_ascii=False)
    PATH.write_text(one_line_a_rate(text) + "\n", "utf-8")


def one_line_a_rate(text: str) -> str:
    """JSON in which what holds nothing deeper stands on one line."""
    return re.sub(
        r"\{[^{}]*\}", lambda found: " ".join(found.group().split()), text
    )


if __name__ == "__main__":
    main()
