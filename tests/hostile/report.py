"""The counts of what came of it, in a table."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hostile.campaign import Outcome
from hostile.verdicts import GOOD, VERDICTS


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


def counts(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """How many there are of each verdict, of callables, and of each kind;
    and by name what `torch.compile` left right.
    """
    some = Counter(outcome.verdict for outcome in outcomes)
    kinds = Counter(outcome.kind for outcome in outcomes)
    compiled = {o.target for o in outcomes if o.kind == "compiled"}
    compiled -= {o.target for o in outcomes if o.verdict not in GOOD}
    return {
        "callables": len({outcome.target for outcome in outcomes}),
        **{v: some[v] for v in VERDICTS},
        "kinds": dict(sorted(kinds.items())),
        "compiled": sorted(compiled),
    }
