"""Redo the experiments of a chapter and write down every seed's result.

    python -m tools.measure.experiments dot_product
    python -m tools.measure.experiments --all

The result goes to ``book/measurements/<chapter>.json``, with provenance.
"""

import argparse
import sys
from pathlib import Path
from types import ModuleType

import torch

from tools.measure.experiments import chapters, load
from tools.measure.provenance import RESULTS, ROOT, as_json, provenance


def run_all(experiment: ModuleType) -> list[dict]:
    """Every setting with every seed, in a fixed order."""
    runs = []
    for setting in experiment.SETTINGS:
        for seed in experiment.SEEDS:
            numbers = experiment.run(seed, **setting)
            rounded = {name: round(x, 4) for name, x in numbers.items()}
            runs.append({"seed": seed, **setting, **rounded})
        print(setting, runs[-1], file=sys.stderr, flush=True)
    return runs


def write(chapter: str) -> Path:
    """Run a chapter's experiments and write its JSON file."""
    torch.set_num_threads(1)
    experiment = load(chapter)
    result = {
        "about": experiment.ABOUT,
        "command": f"python -m tools.measure.experiments {chapter}",
        "provenance": provenance(),
        "runs": run_all(experiment),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{chapter}.json"
    path.write_text(as_json(result), encoding="utf-8")
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
