"""What is shown of the source on pages of its own: the API, claims' tests."""

from pathlib import Path

import api
import claim_tests
from ledger import read_ledger

import selfattn

ROOT = Path(__file__).resolve().parents[2]
MODULE = '''"""About it."""

def shown(a: int, *, b: str = "x") -> float:
    """Half of it."""

def _hidden(a):
    """Not for others."""

def untold(a):
    return a

class Kept:
    """It keeps."""

    def __init__(self, n: int) -> None:
        self.n = n
'''


def test_the_public_parts_of_a_module_with_how_they_are_called():
    assert list(api.public(MODULE)) == [
        ("def shown(a: int, *, b: str='x') -> float", "Half of it."),
        ("class Kept(n: int)", "It keeps."),
    ]


def test_all_that_the_package_exports_is_there():
    texts = [path.read_text() for _, path in api.modules(ROOT / api.PACKAGE)]
    calls = [call for text in texts for call, _ in api.public(text)]
    names = {call.split()[1].partition("(")[0] for call in calls}
    assert {*selfattn.__all__} <= names


def test_every_test_that_a_row_names_has_its_place():
    folder = ROOT / claim_tests.FOLDER
    places = {
        (claim_tests.chapter_of(path.relative_to(folder)), name)
        for path in folder.rglob("test_*.py")
        for name, _ in claim_tests.pieces(path.read_text("utf-8"))
    }
    rows = read_ledger(ROOT / "book" / "claims")
    assert {(row.chapter, row.test) for row in rows if row.test} <= places


def test_a_file_is_cut_before_what_decorates_a_test():
    text = "import x\n\n@mark\ndef test_a():\n    pass\n\ny = 1\npass"
    (_, before), (name, test) = claim_tests.pieces(text)
    assert (before, name) == ("import x", "test_a")
    assert test.startswith("@mark") and test.endswith("pass")
