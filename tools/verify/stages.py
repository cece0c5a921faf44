"""Verify all that a reader sees, stage by stage; red if any stage is red.

    .venv/bin/python -m tools.verify.stages              every stage
    .venv/bin/python -m tools.verify.stages style types  those that are named

Makefile, README and the workflows all come here, so that they agree.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPORT = Path("_build", "notebooks.xml")  # how long each notebook took
BESIDE = "site"  # is built, on one core, while the stages before it run
GIVING_WAY = ["nice", "-n", "19"] if shutil.which("nice") else []
CORES = min(3, os.cpu_count() or 1)  # more only wait for one that takes long


def stages() -> dict[str, list[str]]:
    """What each stage hands to Python, the quick ones first."""
    return {
        "style": ["-m", "ruff", "check"],
        "format": ["-m", "ruff", "format", "--check"],
        "types": ["-m", "mypy"],
        "spelling": ["-m", "codespell_lib"],
        "notebooks": ["-m", "pytest", *notebooks()],
        "slowest": ["-m", "tools.verify.slowest", str(REPORT)],
        "site": ["-m", "tools.build.website"],
        "tests": ["-m", "pytest", *tests()],
    }


def tests() -> list[str]:
    """Tests in several processes; one that is done takes from the others.

    One process more than there are cores: tests in a browser often wait. All
    find the site built, so that no two build it at once. What of it has not
    changed since a browser looked at it is not looked at again. No notebook
    is executed: nbval, which takes seconds to be imported, stays out. The
    tests that take longest are told, for they alone are worth a cure.
    """
    processes = [f"--numprocesses={CORES + 1}", "--dist=worksteal"]
    processes += ["--durations=60", "--durations-min=5"]
    plugins = ["-pno:nbval", "-ptools.verify.looks", "--looks=changed"]
    return [*plugins, *processes, "tests", "src", *pages()]


def pages() -> list[str]:
    """The texts whose examples are run: the README and the book's pages."""
    book = sorted(path.relative_to(ROOT) for path in ROOT.glob("book/**/*.md"))
    return ["--doctest-glob=*.md", "README.md", *map(str, book)]


def notebooks() -> list[str]:
    """Strict nbval on the notebooks of the table of contents, and no other.

    Named one by one: a folder would also give it copies, and none at all
    would make it look everywhere. Each has its cells run in one process.
    """
    from tools.build.notebooks import (
        in_contents,  # reads the contents with PyYAML
    )

    paths = [str(path.relative_to(ROOT)) for path in in_contents(ROOT)]
    return [
        "-p",
        "tools.verify.pictures",
        "-p",
        "tools.verify.comparisons",
        "--nbval",
        "--nbval-current-env",
        "--nbval-cell-timeout=60",
        f"--junit-xml={REPORT}",
        f"--numprocesses={CORES}",
        "--dist=loadfile",
        *(paths or ["no-notebook-in-_toc.yml"]),
    ]


def run(stage: str, arguments: list[str]) -> tuple[bool, float]:
    """Run one stage; whether it is green, and its seconds.

    Where processes share the cores, each has one thread, unless the caller
    says otherwise: as many again for each would only wait for each other.
    """
    announce(stage, arguments)
    shares = stage in ("notebooks", "tests")
    threads = {"OMP_NUM_THREADS": "1"} if shares else {}
    start = time.perf_counter()
    code = subprocess.call(
        [sys.executable, *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        env=threads | os.environ,
    )
    return code == 0, time.perf_counter() - start


def run_beside(
    arguments: list[str], first: list[str]
) -> tuple[bool, float, str]:
    """The same beside other stages: what it says is kept for later.

    Args:
        arguments: what Python is handed.
        first: what comes before Python, as `GIVING_WAY` to those stages:
            the seconds of the notebooks are held to a limit.
    """
    start = time.perf_counter()
    done = subprocess.run(
        [*first, sys.executable, *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode == 0, time.perf_counter() - start, done.stdout


def announce(stage: str, arguments: list[str]) -> None:
    """Which stage it is, and how to run it alone."""
    print(f"\n== {stage}: python {' '.join(arguments)}", flush=True)


def run_all(stages: dict[str, list[str]]) -> dict[str, tuple[bool, float]]:
    """Run them in order, all of them even after a red one."""
    results = {}
    with ThreadPoolExecutor(max_workers=1) as pool:
        if BESIDE in stages:
            first = GIVING_WAY if len(stages) > 1 else []
            aside = pool.submit(run_beside, stages[BESIDE], first)
        for name, arguments in stages.items():
            if name != BESIDE:
                results[name] = run(name, arguments)
                continue
            announce(name, arguments)
            green, seconds, said = aside.result()
            results[name] = green, seconds
            print(said, end="", flush=True)
    return results


def main() -> int:
    """Run the stages, all of them even after a red one, and sum up."""
    known = stages()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stage", nargs="*", help=", ".join(known))
    named = parser.parse_args().stage
    if unknown := set(named) - set(known):
        parser.error(f"no such stage: {', '.join(sorted(unknown))}")
    if not named or "notebooks" in named:
        (ROOT / REPORT).unlink(missing_ok=True)

    results = run_all({name: known[name] for name in named or known})
    print("\n== summary")
    for name, (green, seconds) in results.items():
        print(f"{'green' if green else 'RED':5} {seconds:6.1f} s  {name}")
    red = [name for name, (green, _) in results.items() if not green]
    print(f"red: {', '.join(red)}" if red else "every stage is green")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
