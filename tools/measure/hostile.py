"""Try the package with hostile inputs, and count what comes of it.

    python -m tools.measure.hostile                 all: some 20,000 checks
    python -m tools.measure.hostile --quick         a fixed sample
    python -m tools.measure.hostile --only layers   what has that in its name
    python -m tools.measure.hostile --seed 2 --write    keep the counts
    python -m tools.measure.hostile --share 0.7     of each callable's checks

A seed decides sizes, places and which hostile things are drawn: faults are
mended on one, and the mends are measured on another.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from hostile.campaign import Outcome, run_all
from hostile.report import counts, summary
from hostile.verdicts import GOOD

from tools.measure.provenance import RESULTS, provenance

LEDGER = RESULTS / "hostile.json"


def record(seed: int, share: float, counted: dict[str, Any]) -> None:
    """Keep the counts of this seed beside those of the others."""
    kept = json.loads(LEDGER.read_text("utf-8")) if LEDGER.exists() else {}
    counted = {"share": share, **counted}
    others = {n: x for n, x in kept.get("seeds", {}).items() if n != str(seed)}
    seeds = {**others, str(seed): counted}  # the draw tried last comes last
    command = "python -m tools.measure.hostile --seed N --share S --write"
    result = {"command": command, **provenance(), "seeds": seeds}
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    LEDGER.write_text(text, encoding="utf-8")


def asked() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args()


def main() -> int:
    """Run, print every failure, and sum up; red if there is one."""
    options = asked()
    outcomes: list[Outcome] = []
    for outcome in run_all(
        options.seed,
        options.only,
        options.quick,
        options.processes,
        options.share,
    ):
        outcomes.append(outcome)
        if outcome.verdict not in GOOD and not options.quiet:
            print(
                f"{outcome.verdict.upper()}: {outcome.kind}: "
                f"{outcome.detail}: {outcome.why}",
                flush=True,
            )
    print(summary(outcomes, options.seed))
    if options.write:
        record(options.seed, options.share, counts(outcomes))
    return int(any(outcome.verdict not in GOOD for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
