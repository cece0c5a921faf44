"""Corrupt copies of the book by rule, and count what the chain catches.

    python -m tools.measure.corruptions                    60 of each kind
    python -m tools.measure.corruptions --sample 5         fewer
    python -m tools.measure.corruptions --only claims --show
    python -m tools.measure.corruptions --half held --write

Holes are mended on one half of the corruptions, by a hash of what each is,
and rates are stated of the other. Edits that ought to pass are made likewise,
and red ones counted. A corruption that only the record finds is shown by
`make accept`, and would pass if nobody read it; so it is counted apart.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from tools.measure.corruptions import kinds
from tools.measure.corruptions.corruption import HALVES, HARMLESS, KINDS
from tools.measure.corruptions.tables import edits, rates, table
from tools.measure.corruptions.trial import Outcome, copy_of, sample, tried
from tools.measure.provenance import RESULTS, ROOT, provenance

LEDGER = RESULTS / "corruptions.json"
MANY = 60

for found in iter_modules(kinds.__path__):
    import_module(f"{kinds.__name__}.{found.name}")


def run(
    tree: Path, many: dict[str, int], seed: int, half: str = ""
) -> Iterator[Outcome]:
    """Try at most so many of each of these kinds, on a copy of the tree."""
    for name, most in many.items():
        make = (KINDS | HARMLESS)[name]
        for corruption in sample(make, ROOT, seed, most, half):
            yield tried(tree, corruption)


def amounts(asked: argparse.Namespace) -> dict[str, int]:
    """How many of each kind are asked for."""
    gentle = dict.fromkeys(HARMLESS, asked.harmless or asked.sample)
    together = dict.fromkeys(KINDS, asked.sample) | gentle
    return {asked.only: together[asked.only]} if asked.only else together


def in_words(found: tuple[str, dict[str, int]]) -> str:
    """What became of one kind of harmless edits."""
    rule, row = found
    seen = (
        f"{row['shown']} shown by make accept, {row['red']} red all the same"
    )
    return f"{rule}: {row['tried']} edits, {seen}"


def record(seed: int, half: str, counted: dict, gentle: dict) -> None:
    """Keep the rates of one half beside those of the other."""
    known = json.loads(LEDGER.read_text("utf-8")) if LEDGER.exists() else {}
    halves = known.get("halves", {})
    halves[half] = {"seed": seed, "kinds": counted, "harmless": gentle}
    result = {
        "about": "How many corruptions of the book its tests catch, by kind.",
        "command": "python -m tools.measure.corruptions --half held --write",
        "provenance": provenance(),
        "halves": halves,
    }
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    LEDGER.write_text(text, encoding="utf-8")


def main() -> int:
    """Corrupt, ask, count, and print; it is red only if nothing could run."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--sample", type=int, default=MANY)
    parser.add_argument(
        "--harmless", type=int, help="edits that ought to pass"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half", choices=["", *HALVES], default="tune")
    parser.add_argument("--only", choices=[*KINDS, *HARMLESS])
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    bad: list[Outcome] = []
    good: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_of(ROOT, Path(folder))
        for outcome in run(tree, amounts(asked), asked.seed, asked.half):
            gentle = outcome.corruption.kind == "harmless"
            (good if gentle else bad).append(outcome)
            surprising = bool(outcome.caught) == gentle
            # What is missed on the other half is for nobody to see.
            if asked.show and surprising and asked.half != "held":
                print(f"{outcome.corruption} {outcome.tests}"[:400])
    counted, gentle_ones = rates(bad), edits(good)
    print(table(counted), *map(in_words, gentle_ones.items()), sep="\n")
    if asked.write and asked.half and not asked.only:
        record(asked.seed, asked.half, counted, gentle_ones)
    return 0 if bad or good else 1


if __name__ == "__main__":
    sys.exit(main())
