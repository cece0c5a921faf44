"""A way out of a test is red, and so is a command that lets one by."""

import shutil
from pathlib import Path

import pytest
from guards import commands, escapes

ROOT = Path(__file__).resolve().parents[2]
SOUND = """import pytest


@settles("004-028", "wrong")
def test_a():
    assert 1 + 1 == 2
"""


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("@settles", "@pytest.mark.skip" + "\n@settles"),
        ("@settles", "@pytest.mark.xfail" + "(strict=False)\n@settles"),
        ("import pytest", "import pytest\npytestmark = []"),
        ("import pytest", "import pytest\n__test__ = False"),
        ("import pytest", "import pytest\nx = pytest.importorskip('y')"),
        ("import pytest", "collect_ignore = ['x']"),
        ("def test_a", "def pytest_collection_modifyitems"),
        ("import pytest", "import warnings\nwarnings.simplefilter('ignore')"),
        ("    assert", "    # doctest: " + "+S" + "KIP\n    assert"),
        ("assert 1 + 1 == 2", "assert True"),
    ],
)
def test_a_way_out_is_red(was, becomes):
    assert list(escapes.of_tests("tests/test_x.py", SOUND)) == []
    broken = SOUND.replace(was, becomes)
    assert list(escapes.of_tests("tests/test_x.py", broken))


@pytest.mark.parametrize("body", ["pass", "assert True", "f()"])
def test_a_claims_test_that_asserts_nothing_is_red(tmp_path, body):
    path = tmp_path / "test_x.py"
    path.write_text(SOUND)
    assert escapes.idle_claims(tmp_path) == []
    path.write_text(SOUND.replace("assert 1 + 1 == 2", body))
    (found,) = escapes.idle_claims(tmp_path)
    assert found == "test_x.py: test_a asserts nothing"


@pytest.mark.parametrize(
    ("name", "was", "becomes", "guard"),
    [
        ("Makefile", "\t@$(VENV)", "\t-@$(VENV)", commands.recipes),
        ("Makefile", ".stages\n", ".stages style\n", commands.recipes),
        (
            ".github/workflows/test.yml",
            "run: make test",
            "run: make test || true",
            commands.steps,
        ),
        (
            ".github/workflows/test.yml",
            "- run: make test",
            "- continue-on-error: true\n        run: make test",
            commands.steps,
        ),
        (
            "pyproject.toml",
            '"--doctest-modules"',
            '"--doctest-modules", "--ignore=tests/site"',
            commands.options,
        ),
        ("pyproject.toml", '["error"]', '["ignore"]', commands.options),
        ("pyproject.toml", "xfail_strict = true\n", "", commands.options),
        ("pyproject.toml", 'skip = "', 'skip = "*.md,', commands.options),
    ],
)
def test_a_command_that_lets_by_is_red(tmp_path, name, was, becomes, guard):
    for kept in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / kept, tmp_path)
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    assert guard(tmp_path) == []
    text = (tmp_path / name).read_text("utf-8")
    (tmp_path / name).write_text(text.replace(was, becomes, 1), "utf-8")
    assert guard(tmp_path)
