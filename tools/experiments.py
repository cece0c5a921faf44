"""Redo the experiments of a chapter and write down every seed's result.

    python tools/experiments.py dot_product
    python tools/experiments.py --all

Each chapter's experiments are a module ``tools/experiments/<chapter>.py``:

    ABOUT      what is asked, in a sentence
    SEEDS      the seeds, at least five
    SETTINGS   the settings, a list of keyword arguments of `run`
    SMALLEST   the cheapest of them, which the tests run again
    TOLERANCE  by how much a number may differ on another machine, and why
    run        run(seed, **setting) -> {name: number}

The result goes to ``book/measurements/<chapter>.json``, with provenance.
"""

import argparse
import importlib.util
import json
import platform
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import torch

ROOT = Path(__file__).resolve().parents[1]
MODULES = Path(__file__).resolve().with_suffix("")
RESULTS = ROOT / "book" / "measurements"


def chapters() -> list[str]:
    """The chapters that have experiments."""
    return sorted(path.stem for path in MODULES.glob("*.py"))


def load(chapter: str) -> ModuleType:
    """The module of a chapter's experiments."""
    path = MODULES / f"{chapter}.py"
    spec = importlib.util.spec_from_file_location(
        f"experiment_{chapter}", path
    )
    if spec is None or spec.loader is None or not path.is_file():
        raise ValueError(
            f"experiments exist for {', '.join(chapters())}, "
            f"but not for {chapter!r}"
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def provenance() -> dict[str, str | int]:
    """What a reader needs to know about where the numbers come from."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "processor": processor(),
        "threads": torch.get_num_threads(),
    }


def processor() -> str:
    """The processor's name, where the system tells it."""
    listed = Path("/proc/cpuinfo")
    text = listed.read_text("utf-8") if listed.is_file() else ""
    for line in text.splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


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
        "command": f"python tools/experiments.py {chapter}",
        "provenance": provenance(),
        "runs": run_all(experiment),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{chapter}.json"
    path.write_text(as_json(result), encoding="utf-8")
    return path


def as_json(result: dict) -> str:
    """JSON with one run a line, so that a difference can be read."""
    head = json.dumps({**result, "runs": []}, indent=1)
    runs = ",\n  ".join(json.dumps(run) for run in result["runs"])
    return head.replace('"runs": []', f'"runs": [\n  {runs}\n ]') + "\n"


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
