"""Every mistake that is listed has been planted, and the tests caught it."""

import json
import tomllib
from collections import Counter

import pytest

from tools.measure import mutants
from tools.measure.provenance import ROOT

LISTED = tomllib.loads(mutants.LIST.read_text("utf-8"))
PACKAGE = ROOT / "src" / "selfattn"
# What serves the book's pages, and the kit that is tested on wrong answers.
NOT_MECHANISMS = {"data", "doctor", "labs", "plots"}


def public_modules():
    """The mechanisms' modules, by their paths in the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.name != "__init__.py" and name.parts[0] not in NOT_MECHANISMS:
            yield name.as_posix()


def test_every_mechanism_has_three_mistakes_at_least():
    found = Counter(
        mutant.get("file", module["file"])
        for module in LISTED.values()
        for mutant in module["mutant"]
    )
    # These read files and check shapes for the others, and the last says in
    # words what the others have to know of each other.
    few = {"checks.py", "signatures.py", "measurements.py", "source.py"}
    few |= {"devices/ranks.py"}
    assert [m for m in public_modules() if found[m] < 3 and m not in few] == []


def test_every_part_of_the_doctor_has_three_as_well():
    """Its own parts: what it knows of mistakes is held by its banks."""
    found = Counter(
        mutant.get("file", module["file"])
        for module in LISTED.values()
        for mutant in module["mutant"]
    )
    parts = {path.name for path in (PACKAGE / "doctor").glob("*.py")}
    parts -= {"__init__.py"}
    assert [part for part in parts if found[f"doctor/{part}"] < 3] == []


def test_no_mistake_is_listed_twice():
    for module in LISTED.values():
        names = [mutant["mistake"] for mutant in module["mutant"]]
        assert len(set(names)) == len(names)


def test_each_was_planted_and_caught():
    recorded = json.loads(mutants.LEDGER.read_text("utf-8"))["modules"]
    assert {name: set(became) for name, became in recorded.items()} == {
        name: {mutant["mistake"] for mutant in module["mutant"]}
        for name, module in LISTED.items()
    }
    for became in recorded.values():
        assert set(became.values()) == {"caught"}
    assert sum(map(len, recorded.values())) >= 80


def test_each_has_its_one_place():
    for module in LISTED.values():
        for mutant in module["mutant"]:
            path = PACKAGE / mutant.get("file", module["file"])
            text = path.read_text("utf-8")
            planted = mutants.planted(
                mutant["was"], text, mutant["becomes"], path
            )
            assert planted != text


def test_a_mistake_without_a_place_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="stands there 2 times"):
        mutants.planted("x", "x + x", "y", tmp_path)
