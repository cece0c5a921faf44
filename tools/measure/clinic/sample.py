"""A few visits that tests make again: no outcome of theirs may worsen.

    python -m tools.measure.clinic.sample     draw them anew

From the half to tune on, of each kind one that is sound and one that is ill,
told the facts. What came of them stands in ``tests/clinic/sample.json``.
"""

import json
from collections.abc import Iterator

import torch

from tools.measure.clinic.drawing import Case, ill, sound
from tools.measure.clinic.examining import Visit, visit
from tools.measure.clinic.patients import ROOT

PATH = ROOT / "tests" / "clinic" / "sample.json"
WAY = "the facts"
BEST, WORST = 2, 0


def rank(seen: Visit) -> int:
    """How well a visit went: 2 is best, 0 is what must not be.

    An ill one is best named right, and must not be called healthy; a sound
    one is best called healthy, and must not be called ill.
    """
    if seen.operators:
        if seen.outcome != "ill":
            return WORST
        return BEST if seen.right else 1
    return {"healthy": BEST, "ill": WORST}.get(seen.outcome, 1)


def drawn() -> Iterator[Case]:
    """Of each kind a sound one and an ill one."""
    well = {case.style.kind: case for case in sound("tune")}
    missing = set(well)
    for case in ill("tune", seed=1):
        if case.style.kind in missing:
            missing.remove(case.style.kind)
            yield case
            yield well[case.style.kind]
        if not missing:
            return


def record(case: Case) -> dict:
    """A visit, as it is written down."""
    return {
        "patient": f"{case.style.kind}/{case.style.name}",
        "operators": case.operators,
        "text": case.text if case.operators else "",
        "rank": rank(visit(case, WAY)),
    }


def main() -> None:
    """Draw the sample anew."""
    torch.set_num_threads(1)
    made = sorted(map(record, drawn()), key=lambda one: one["patient"])
    text = json.dumps(made, indent=1, ensure_ascii=False)
    PATH.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
