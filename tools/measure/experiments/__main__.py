"""Redo the experiments of a chapter and write down every seed's result.

    python -m tools.measure.experiments                 every chapter
    python -m tools.measure.experiments dot_product     one

The result goes to ``book/measurements/<chapter>.json``, with provenance. As
many runs are made at once as there are cores, each on one thread, as more
make it no faster. What is done is kept in ``_build``, run by run: broken off
and called again, a chapter goes on from there, unless code of the experiments
or of the package has changed.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

import torch

from tools.measure.experiments import chapters, load, run_one
from tools.measure.provenance import RESULTS, ROOT, as_json, provenance

PACKAGE = ROOT / "src" / "selfattn"
Map = Callable[..., Iterable[dict[str, float]]]


def run_all(
    experiment: ModuleType, kept: Path, mapped: Map = map
) -> list[dict]:
    """Every setting with every seed, in a fixed order.

    Args:
        experiment: a module with the names that the package lists.
        kept: a file, a run a line; what is there is not run again.
        mapped: as `map`, which may run several at once.
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
    came = mapped(partial(run_one, experiment.run), wanted[before:])
    for setting, numbers in zip(wanted[before:], came, strict=True):
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
    name = experiment.__name__.rpartition(".")[2]
    here = Path(__file__).parent
    code = [here / f"{name}.py", *here.glob("_*.py"), *PACKAGE.rglob("*.py")]
    mark = hashlib.sha256(torch.__version__.encode())
    for path in sorted(code):
        mark.update(path.read_bytes())
    kept = f"{name}-{mark.hexdigest()[:12]}.jsonl"
    return ROOT / "_build" / "experiments" / kept


def write(chapter: str, mapped: Map) -> Path:
    """Run a chapter's experiments and write its JSON file."""
    experiment = load(chapter)
    result = {
        "about": experiment.ABOUT,
        "command": f"python -m tools.measure.experiments {chapter}",
        "provenance": provenance(),
        "runs": run_all(experiment, kept := place(experiment), mapped),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{chapter}.json"
    path.write_text(as_json(result), encoding="utf-8")
    kept.unlink()
    return path


def main(words: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapter", nargs="*", help=", ".join(chapters()))
    wanted = parser.parse_args(words).chapter or chapters()
    if unknown := set(wanted) - set(chapters()):
        known = ", ".join(chapters())
        parser.error(f"no experiments of {', '.join(unknown)}, but of {known}")
    torch.set_num_threads(1)
    with ProcessPoolExecutor(
        os.cpu_count(), get_context("spawn"), torch.set_num_threads, (1,)
    ) as several:
        for chapter in wanted:
            print(write(chapter, several.map).relative_to(ROOT), flush=True)


if __name__ == "__main__":
    main()
