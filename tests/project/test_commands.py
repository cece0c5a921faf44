"""What runs the suite does so, and no test has a way out."""

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
