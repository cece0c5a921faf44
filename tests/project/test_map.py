"""The map in CONTRIBUTING.md is that of the tree, and of its imports."""

import ast
import re
from pathlib import Path

import pytest
from guards import house

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "guard",
    [
        house.unmapped,
        house.stale,
        house.imports_of_later_lines,
        house.circles,
        house.families_apart,
    ],
    ids=lambda guard: guard.__name__,
)
def test_the_map_is_that_of_the_tree(guard):
    assert guard(ROOT) == []


def test_imports_were_looked_at():
    known = set(house.arrows(ROOT))
    assert ("src/selfattn/masks.py", "src/selfattn/checks.py") in known
    assert (
        "tests/chain/conftest.py",
        "tests/chain/small_notebook.py",
    ) in known
    assert ("book/extensions/claims.py", "book/extensions/ledger.py") in known


def test_what_is_said_to_have_no_chapter_has_none():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    sentence = re.search(r"A module needs no chapter: [^.]+\.", text)[0]
    names = re.findall(r"`(\w+)`", sentence)
    assert names
    for name in names:
        place = ROOT / "src" / "selfattn" / name
        assert place.is_dir() or place.with_suffix(".py").exists()
        assert not (ROOT / "book" / f"{name}.ipynb").exists()


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("tolerance", "src/selfattn/doctor/"),
        ("new kind", "src/selfattn/doctor/kinds/"),
        ("Reformer", "tools/measure/bench/"),
        ("badge", "book/extensions/"),
        ("is refused", "src/selfattn/"),
        ("time limit", "src/selfattn/doctor/engine/"),
        ("picture", "src/selfattn/labs/machinery/"),
        ("plain commands", "tests/project/"),
    ],
)
def test_a_newcomer_finds_the_room(word, line):
    """By the first line that has the word."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = [row for row in text.splitlines() if row.startswith("| `")]
    assert next(r for r in rows if word in r).startswith(f"| `{line}`")


ROOMS = ("engine", "deviations", "report", "door", "whole", "command")


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_of_the_doctor_tells_all_that_is_in_it(room):
    """One told of a module that was gone, and of three that were not."""
    folder = ROOT / "src" / "selfattn" / "doctor" / room
    words = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    there = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert set(re.findall(r"`(\w+)`", words)) == there


def test_the_tasks_import_no_more_than_is_said():
    allowed = re.compile(r"src/selfattn/(data/|signatures\.py)")
    for start, end in house.arrows(ROOT):
        if start.startswith("src/selfattn/data/"):
            assert allowed.match(end), (start, end)


FILES = """CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE LICENSE-TEXT
Makefile README.md _config.yml _toc.yml pyproject.toml requirements-book.txt
requirements.txt"""


def test_no_file_lies_beside_those_that_belong_there():
    """Two pictures of a page that somebody had looked at lay there once."""
    there = {path.name for path in ROOT.iterdir() if path.is_file()}
    assert {name for name in there if name[0] != "."} == {*FILES.split()}
