"""Redo the experiments of a chapter and write down every seed's result.

    python -m tools.measure.experiments dot_product
    python -m tools.measure.experiments --all

The result goes to ``book/measurements/<chapter>.json``, with provenance. What
is done is kept in ``_build``, run by run: broken off and called again, a
chapter goes on from there, unless its code has changed.
"""

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path
from types import ModuleType

import torch

from tools.measure.experiments import chapters, load
from tools.measure.provenance import RESULTS, ROOT, as_json, provenance


def run_all(experiment: ModuleType, kept: Path) -> list[dict]:
    """Every setting with every seed, in a fixed order.

    Args:
        experiment: a module with the names that the package lists.
        kept: a file, a run a line; what is there is not run again.
    """
    wanted = [
        {"seed": seed, **setting}
        for setting in experiment.SETTINGS
        for seed in experiment.SEEDS
    ]
    kept.parent.mkdir(parents=True, exist_ok=True)
    lines = kept.read_text("utf-8").splitlines() if kept.exists() else []
    runs = [json.loads(line) for line in lines if line.endswith("}")]
    before, began = len(runs), time.monotonic()
    kept.write_text("".join(f"{json.dumps(run)}\n" for run in runs), "utf-8")
    for setting in wanted[before:]:
        numbers = experiment.run(**setting)
        rounded = {name: round(x, 4) for name, x in numbers.items()}
        runs.append(setting | rounded)
        with kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(runs[-1]) + "\n")
        each = (time.monotonic() - began) / (len(runs) - before)
        left = each * (len(wanted) - len(runs)) / 60
        done = f"{len(runs)} of {len(wanted)}, {left:.0f} minutes left"
        print(f"{done}: {runs[-1]}", file=sys.stderr, flush=True)
    return runs


def place(experiment: ModuleType) -> Path:
    """Where runs are kept, under a name that new code or torch changes."""
    code = Path(experiment.__file__ or "").read_bytes()
    mark = hashlib.sha256(code + torch.__version__.encode()).hexdigest()[:12]
    name = experiment.__name__.rpartition(".")[2]
    return ROOT / "_build" / "experiments" / f"{name}-{mark}.jsonl"


def write(chapter: str) -> Path:
    """Run a chapter's experiments and write its JSON file."""
    torch.set_num_threads(1)
    experiment = load(chapter)
    result = {
        "about": experiment.ABOUT,
        "command": f"python -m tools.measure.experiments {chapter}",
        "provenance": provenance(),
        "runs": run_all(experiment, kept := place(experiment)),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{chapter}.json"
    path.write_text(as_json(result), encoding="utf-8")
    kept.unlink()
    return path


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapter", nargs="*", help=", ".join(chapters()))
    parser.add_argument("--all", action="store_true", help="every chapter")
    options = parser.parse_args()
    wanted = chapters() if options.all else options.chapter
    if not wanted or set(wanted) - set(chapters()):
        parser.error(f"name a chapter: {', '.join(chapters())}; or --all")
    for chapter in wanted:
        print(write(chapter).relative_to(ROOT))


if __name__ == "__main__":
    main()
