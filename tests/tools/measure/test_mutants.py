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


# What becomes of a mutant


SOUND = "def double(x):\n    return 2 * x\n"
TESTS = """
from selfattn.double import double

def test_double():
    assert double(3) == 6
"""
MODULE = {
    "file": "double.py",
    "tests": ["test_double"],
    "witness": "from selfattn.double import double; print(double(3))",
}


def planted_in(root):
    """A package of one function, with its test."""
    package = root / "src" / "selfattn"
    package.mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "pyproject.toml").write_text("")
    (package / "__init__.py").write_text("")
    (package / "double.py").write_text(SOUND)
    (root / "tests" / "test_double.py").write_text(TESTS)
    return root


@pytest.fixture
def tree(tmp_path):
    """Such a package, for a test that changes more than the function."""
    return planted_in(tmp_path)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """One for all tests that leave it as it was."""
    return planted_in(tmp_path_factory.mktemp("kept"))


@pytest.fixture(scope="module")
def sound(kept):
    """What is known of it without a mistake: its tests are run once."""
    return mutants.without_a_mistake(kept, "double", MODULE)


@pytest.mark.parametrize(
    ("becomes", "verdict"),
    [
        ("return 3 * x", "caught"),
        ("raise ImportError", "caught"),
        ("return x + x", "REJECTED"),
        ("return 6.0", "SURVIVED"),
        ("return 2 * x if x else [0 for _ in iter(int, 1)]", "REJECTED"),
    ],
)
def test_what_became_of_it_is_what_its_tests_say(
    kept, sound, becomes, verdict
):
    mutant = {"was": "return 2 * x", "becomes": becomes}
    assert mutants.verdict(kept, MODULE, mutant, sound).startswith(verdict)
    assert (kept / "src/selfattn/double.py").read_text() == SOUND


def test_what_breaks_that_which_all_tests_share_is_caught(tree):
    """Pytest has a number of its own for that: such a mutant survived."""
    (tree / "tests/conftest.py").write_text(
        "from selfattn.double import double\n\nassert double(3) == 6\n"
    )
    sound = mutants.without_a_mistake(tree, "double", MODULE)
    mutant = {"was": "return 2 * x", "becomes": "return 3 * x"}
    assert mutants.verdict(tree, MODULE, mutant, sound) == "caught"


def test_a_mutant_that_never_ends_was_not_caught(tree, monkeypatch):
    """Whatever ran out of time counted as caught, a slow machine's, too."""
    monkeypatch.setattr(mutants, "AT_LEAST", 3)
    monkeypatch.setattr(mutants, "PATIENCE", 0)
    sound = mutants.without_a_mistake(tree, "double", MODULE)
    mutant = {"was": "return 2 * x", "becomes": "while x: pass"}
    assert mutants.verdict(tree, MODULE, mutant, sound).startswith("TOO SLOW")


def test_without_green_tests_nothing_is_said(tree):
    (tree / "src/selfattn/double.py").write_text("double = str\n")
    with pytest.raises(SystemExit, match="red without a mistake"):
        mutants.without_a_mistake(tree, "double", MODULE)
