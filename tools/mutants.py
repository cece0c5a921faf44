"""Plant one mistake at a time in a copy of the package; the tests must see it.

    .venv/bin/python tools/mutants.py                every mutant
    .venv/bin/python tools/mutants.py masks layers   those of these modules

The list is tests/mutants.toml. A mutant that changes nothing that its
module's witness prints is no mistake, and is rejected as one. A mutant whose
tests stay green has survived. Either makes the command fail.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "mutants.toml"
LIMIT = 300  # seconds for one run: a mutant may loop for ever


def planted(was: str, text: str, becomes: str, path: Path) -> str:
    """The module's text with its mistake, which must have one place."""
    if text.count(was) != 1:
        raise SystemExit(
            f"{path}: a mutant's text must stand there once, but it stands "
            f"there {text.count(was)} times: {was!r}"
        )
    return text.replace(was, becomes)


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run Python in the copy, with the copy's package before any other."""
    environment = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 124, "", "too slow")


def verdict(tree: Path, module: dict, mutant: dict, said: str) -> str:
    """What becomes of one mutant: caught, survived or rejected."""
    path = tree / "src" / "selfattn" / mutant.get("file", module["file"])
    healthy = path.read_text()
    path.write_text(planted(mutant["was"], healthy, mutant["becomes"], path))
    try:
        witness = run(tree, "-c", module["witness"])
        if (witness.stdout + last_line(witness.stderr)) == said:
            return "REJECTED: the witness prints the same"
        tests = [f"tests/{name}.py" for name in module["tests"]]
        done = run(
            tree, "-m", "pytest", "-xq", "-p", "no:cacheprovider", *tests
        )
        return "caught" if done.returncode in (1, 2, 124) else "SURVIVED"
    finally:
        path.write_text(healthy)


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

    bad = total = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_of_tree(Path(folder))
        for name in named or modules:
            module = modules[name]
            healthy = run(tree, "-c", module["witness"])
            if healthy.returncode:
                raise SystemExit(f"{name}: no witness\n{healthy.stderr}")
            for mutant in module["mutant"]:
                start = time.perf_counter()
                became = verdict(tree, module, mutant, healthy.stdout)
                seconds = time.perf_counter() - start
                total += 1
                bad += became != "caught"
                said = f"{name}: {mutant['mistake']}"
                print(f"{became:9} {seconds:5.1f} s  {said}", flush=True)
    print(f"{total} mutants, {total - bad} caught, {bad} not")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
