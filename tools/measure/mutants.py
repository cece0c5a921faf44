"""Plant one mistake at a time in a copy of the package; the tests must see it.

    python -m tools.measure.mutants                every mutant
    python -m tools.measure.mutants masks layers   those of these modules

The list is tests/mutants.toml. A mutant that changes nothing that its
module's witness prints is no mistake, and is rejected as one. A mutant whose
tests stay green has survived. Either makes the command fail. What became of
each goes to book/measurements/mutants.json, whose count the book shows.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

from tools.measure.forked import TOO_SLOW, run
from tools.measure.provenance import RESULTS, ROOT, provenance

LEDGER = RESULTS / "mutants.json"
LIST = ROOT / "tests" / "mutants.toml"
# A mutant may loop for ever: it is ended after this many times what the tests
# take without it, and seconds on top. Whatever ran into that was not caught.
PATIENCE, AT_LEAST = 10, 60
HEALTHY = 600  # seconds for the tests of a module, no mistake planted


class Sound(NamedTuple):
    """A module without a mistake: its witness's words, its tests' limit."""

    said: str
    limit: float


def planted(was: str, text: str, becomes: str, path: Path) -> str:
    """The module's text with its mistake, which must have one place."""
    if text.count(was) != 1:
        raise SystemExit(
            f"{path}: a mutant's text must stand there once, but it stands "
            f"there {text.count(was)} times: {was!r}"
        )
    return text.replace(was, becomes)


def verdict(tree: Path, module: dict, mutant: dict, sound: Sound) -> str:
    """What becomes of one mutant: caught, survived, too slow or rejected.

    Pytest's 1 says that a test failed, 2 that one could not be imported, and
    4 that what all tests share could not: it can, without the mistake.
    """
    path = tree / "src" / "selfattn" / mutant.get("file", module["file"])
    healthy = path.read_text()
    path.write_text(planted(mutant["was"], healthy, mutant["becomes"], path))
    os.utime(path, (0, 0))  # else byte code kept in this second would do
    try:
        witness = run(tree, "-c", module["witness"], limit=AT_LEAST)
        if (witness.stdout + last_line(witness.stderr)) == sound.said:
            return "REJECTED: the witness prints the same"
        status = tested(tree, module, sound.limit).returncode
        if status == TOO_SLOW:
            return "TOO SLOW: no test had failed by then"
        return "caught" if status in (1, 2, 4) else "SURVIVED"
    finally:
        path.write_text(healthy)


def tested(
    tree: Path, module: dict, limit: float, keep: bool = False
) -> CompletedProcess:
    """Run the tests of one module, up to the first that fails."""
    tests = [f"tests/{name}.py" for name in module["tests"]]
    options = ("-xq", "-p", "no:cacheprovider", "-p", "no:nbval")
    return run(tree, "-m", "pytest", *options, *tests, limit=limit, keep=keep)


def without_a_mistake(tree: Path, name: str, module: dict) -> Sound:
    """What the witness prints, and how long the tests take; they are green.

    Without that, every mutant would seem to be caught.
    """
    witness = run(tree, "-c", module["witness"], limit=AT_LEAST, keep=True)
    if witness.returncode:
        raise SystemExit(f"{name}: no witness\n{witness.stderr}")
    start = time.perf_counter()
    done = tested(tree, module, HEALTHY, keep=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{name}: red without a mistake\n{done.stdout}")
    return Sound(witness.stdout, AT_LEAST + PATIENCE * seconds)


def record(became: dict[str, dict[str, str]]) -> None:
    """Put what became of some modules' mutants beside that of the others."""
    known = json.loads(LEDGER.read_text()) if LEDGER.exists() else {}
    listed = tomllib.loads(LIST.read_text())
    together = known.get("modules", {}) | became
    text = json.dumps(
        {
            "about": "What became of each mistake that was planted.",
            "command": "python -m tools.measure.mutants",
            "provenance": provenance(),
            "modules": {m: together[m] for m in listed if m in together},
        },
        indent=1,
        ensure_ascii=False,
    )
    LEDGER.write_text(text + "\n", encoding="utf-8")


def last_line(text: str) -> str:
    """The error itself, without the places it passed through."""
    return "\n".join(text.strip().splitlines()[-1:])


def copy_of_tree(folder: Path) -> Path:
    """What the tests of the package need, and nothing built."""
    tree = folder / "tree"
    skip = shutil.ignore_patterns("__pycache__", "_build", ".*")
    for part in ("src", "tests", "tools", "book"):
        shutil.copytree(ROOT / part, tree / part, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


def main() -> int:
    """Plant each, say what became of it, and count."""
    modules = tomllib.loads(LIST.read_text())
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", nargs="*", help=", ".join(modules))
    named = parser.parse_args().module
    if unknown := set(named) - set(modules):
        parser.error(f"no such module: {', '.join(sorted(unknown))}")

    results: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_of_tree(Path(folder))
        for name in named or modules:
            module = modules[name]
            sound = without_a_mistake(tree, name, module)
            results[name] = {}
            for mutant in module["mutant"]:
                start = time.perf_counter()
                became = verdict(tree, module, mutant, sound)
                seconds = time.perf_counter() - start
                results[name][mutant["mistake"]] = became
                line = f"{became:9} {seconds:5.1f} s  {name}: "
                print(line + mutant["mistake"], flush=True)
            record({name: results[name]})
    ends = [became for one in results.values() for became in one.values()]
    caught = ends.count("caught")
    print(f"{len(ends)} mutants, {caught} caught, {len(ends) - caught} not")
    return int(caught < len(ends))


if __name__ == "__main__":
    sys.exit(main())
