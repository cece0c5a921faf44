"""The counts: said in a table, and kept beside the book's measurements."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hostile.campaign import Outcome
from hostile.verdicts import VERDICTS

LEDGER = Path(__file__).parents[2] / "book" / "measurements" / "hostile.json"


def summary(outcomes: Sequence[Outcome], seed: int) -> str:
    """How many of each verdict, by kind of hostility."""
    kinds = sorted({outcome.kind for outcome in outcomes})
    rows = [["", *VERDICTS]]
    for kind in kinds:
        some = Counter(o.verdict for o in outcomes if o.kind == kind)
        rows.append([kind, *(str(some[v]) for v in VERDICTS)])
    every = Counter(o.verdict for o in outcomes)
    rows.append(["all", *(str(every[v]) for v in VERDICTS)])
    table = "\n".join(
        f"{first:18}" + "".join(f"{cell:>18}" for cell in rest)
        for first, *rest in rows
    )
    tried = len({outcome.target for outcome in outcomes})
    return f"{table}\n{len(outcomes)} checks of {tried} callables, seed {seed}"


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many there are of each verdict."""
    some = Counter(outcome.verdict for outcome in outcomes)
    return {verdict: some[verdict] for verdict in VERDICTS}


def write(outcomes: Sequence[Outcome], seed: int) -> None:
    """Keep the counts of this seed in the ledger."""
    kept = {}
    if LEDGER.exists():
        kept = json.loads(LEDGER.read_text("utf-8"))
    kept[str(seed)] = counts(outcomes)
    LEDGER.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
