"""What runs the suite does so, and no test has a way out."""

import re
from pathlib import Path

import pytest
from guards import commands, escapes

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "guard",
    [
        commands.recipes,
        commands.steps,
        commands.options,
        escapes.ways_out,
    ],
    ids=lambda guard: guard.__name__,
)
def test_the_suite_is_run_whole(guard):
    assert guard(ROOT) == []


def test_the_plain_commands_are_those_of_the_recipes():
    """README said how to do without make; nothing held it to the recipes."""
    text = (ROOT / "README.md").read_text("utf-8")
    block = re.search(r"## Without make\n\n```text\n(.+?)```", text, re.S)[1]
    plain = [
        tuple(part.strip() for part in line.split("   then   "))
        for line in block.splitlines()
    ]
    made = (ROOT / "Makefile").read_text("utf-8")
    recipes = dict(re.findall(r"^(\w+):\n((?:\t.+\n)+)", made, re.M))
    python, venv = "@$(PYTHON)", "@$(VENV)"
    wanted = [
        tuple(
            line.strip()
            .replace(python, "python3")
            .replace(venv, ".venv/bin/python")
            for line in recipes[target].splitlines()
        )
        for target in ("book", "test", "lab")
    ]
    spaces = [tuple(" ".join(c.split()) for c in pair) for pair in plain]
    assert spaces == wanted


def test_every_test_of_a_claim_asserts():
    assert escapes.idle_claims(ROOT / "tests" / "claims") == []


def test_nothing_is_passed_over(request):
    """Each test function of a file that was collected has a case."""
    items = request.session.items
    files = {item.path for item in items}
    ran = {(item.path, getattr(item, "originalname", "")) for item in items}
    missing = [
        f"{path.name}: {name}"
        for path in sorted(files)
        if path.suffix == ".py" and ROOT / "tests" in path.parents
        for name in escapes.test_functions(path.read_text("utf-8"))
        if (path, name) not in ran
    ]
    chosen = request.config.getoption("keyword") or any(
        "::" in argument for argument in request.config.args
    )
    assert chosen or missing == []


def test_no_file_is_passed_over(request):
    """Where all of the suite is run, each of its files is."""
    whole = {"tests", "src"} <= set(request.config.args)
    files = {item.path for item in request.session.items}
    there = set((ROOT / "tests").rglob("test_*.py"))
    assert not whole or sorted(there - files) == []
