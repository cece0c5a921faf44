"""Guards on what runs the suite: recipes, steps, options."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import yaml

RECIPE = re.compile(
    r"\t(?:@\$\(PYTHON\) -m tools\.setup\.prepare (?:book|test|lab)"
    r"|@\$\(VENV\) -m tools\.[\w.]+(?: --sample \$\(SAMPLE\))?"
    r"|@\$\(VENV\) -m (?:jupyter lab book|ruff check --fix|ruff format)"
    r"|@\$\(VENV\) -m http\.server 8000 --bind 127\.0\.0\.1 "
    r"--directory _build/html"
    r'|@echo "[^"$`]*"'
    r"|rm -rf _build(?: \.\w+)*)"
)
ALONE = {"help", "serve", "clean"}  # targets that prepare nothing
STEP = {"uses", "with", "run", "env", "id"}
JOB = {
    "runs-on",
    "timeout-minutes",
    "permissions",
    "steps",
    "needs",
    "strategy",
    "env",
    "environment",
}
ENVIRONMENT = {
    "PIP_EXTRA_INDEX_URL",
    "BOOK_REPOSITORY_URL",
    "BOOK_SITE_URL",  # words in the notebooks to take along; no test's way
}
# The job that writes a branch, and tests nothing.
PUSHES = {"publish: taken": {"GH_TOKEN"}}
ADDOPTS = [
    "--strict-markers",
    "--strict-config",
    "--doctest-modules",
    "--import-mode=importlib",
]
PYTEST = {
    "norecursedirs": [".*", "_build", "node_modules"],
    "minversion": "9.0",
    "testpaths": ["tests", "src"],
    "pythonpath": [".", "tests", "tests/assertions", "book/extensions"],
    "filterwarnings": ["error"],
    "xfail_strict": True,
}
RULES = ["E", "F", "I", "UP", "B", "D", "C4", "SIM", "RUF", "N", "W"]


def recipes(root: Path) -> list[str]:
    """Each line of the Makefile runs one thing, and its error counts."""
    found, target, first = [], "", ""
    for line in (root / "Makefile").read_text("utf-8").splitlines():
        if match := re.match(r"(\w[\w-]*):", line):
            target, first = match[1], ""
        elif line.startswith("\t"):
            if not RECIPE.fullmatch(line):
                found.append(f"{target}: no such recipe: {line.strip()}")
            prepares = "tools.setup.prepare" in (first or line)
            if target not in ALONE and not prepares:
                found.append(f"{target}: runs before anything is prepared")
            first = first or line
    return [*found, *idle_targets(root)]


def idle_targets(root: Path) -> Iterator[str]:
    """Each target does something, and `test` runs all stages."""
    text = (root / "Makefile").read_text("utf-8")
    bodies = dict(re.findall(r"^(\w[\w-]*):.*\n((?:\t.*\n?)*)", text, re.M))
    for target in re.findall(r"^\.PHONY: (.*)$", text, re.M)[0].split():
        lines = bodies.get(target, "").splitlines()
        wanted = 1 if target in ALONE else 2
        if len(lines) < wanted:
            yield f"{target}: {len(lines)} lines of recipe"
    if not bodies["test"].endswith("-m tools.verify.stages\n"):
        yield "test: does not run every stage"


def steps(root: Path) -> list[str]:
    """No step of a workflow may fail, be left out or be run on a condition."""
    found = []
    for path in sorted((root / ".github/workflows").glob("*.yml")):
        jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
        for name, job in jobs.items():
            where = f"{path.stem}: {name}"
            found += [f"{where}: {key}" for key in job if key not in JOB]
            for place in (job, *job["steps"]):
                known = ENVIRONMENT | PUSHES.get(where, set())
                others = place.get("env", {}).keys() - known
                found += [f"{where}: sets {other}" for other in others]
            for step in job["steps"]:
                found += [f"{where}: {k}" for k in step if k not in STEP]
                command = step.get("run", "")
                if re.search(r"\|\||;|\bset \+e|\btrue\b|&\s*$", command):
                    found.append(f"{where}: its error is lost: {command}")
    return found


def options(root: Path) -> list[str]:
    """The options of pytest, Ruff and mypy are those that are meant."""
    text = (root / "pyproject.toml").read_text("utf-8")
    tools = tomllib.loads(text)["tool"]
    pytest = tools["pytest"]["ini_options"]
    added = [x for x in pytest["addopts"] if "jaxtyping-packages" not in x]
    found = []
    if added != ADDOPTS or len(pytest["addopts"]) != len(ADDOPTS) + 1:
        found.append(f"pytest is run with {added}")
    for key in pytest.keys() - {"addopts", "markers"} - PYTEST.keys():
        found.append(f"pytest has an option {key}")
    for key, value in PYTEST.items():
        if pytest.get(key) != value:
            found.append(f"pytest's {key} is {pytest.get(key)}")
    if tools["ruff"]["lint"]["select"] != RULES:
        found.append("Ruff does not look for all that it should")
    mypy = tools["mypy"]
    if (mypy["files"], mypy.get("check_untyped_defs")) != (["src"], True):
        found.append("mypy does not check the whole package")
    if re.search(r"\*\.(?:ipynb|md|py)", tools["codespell"]["skip"]):
        found.append("codespell skips what is read")
    return found
