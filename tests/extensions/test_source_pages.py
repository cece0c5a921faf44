"""What is shown of the source on pages of its own: the API, claims' tests."""

import re
from pathlib import Path

import api
import claim_tests
import pytest
from docstrings import drawn
from docutils import nodes
from ledger import read_ledger
from record import read_record
from small_book import built

import selfattn

ROOT = Path(__file__).resolve().parents[2]
OF = (claim_tests.Tests, claim_tests.OurTests)
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


SAID = """Half of it, which *is*
less than `a`.

    half = a / 2

Args:
    a, b: two of them,
        in ``two`` lines.
    **others: the rest.

Returns:
    Half, a
    number.

>>> shown(1)
0.5
"""


def test_a_docstring_is_read_as_a_page():
    """A reader's phone showed half of each line, and its backticks."""
    told, figure, args, entries, returns, example = drawn(SAID.strip())
    assert told.astext() == "Half of it, which is less than a."
    assert isinstance(told[1], nodes.emphasis)
    assert isinstance(told[3], nodes.literal) and told[3].astext() == "a"
    assert figure.astext().strip() == "half = a / 2"
    assert args.astext() == "Args"
    assert [entry.astext() for entry in entries] == [
        "a, b: two of them, in two lines.",
        "**others: the rest.",
    ]
    assert returns.astext() == "Returns: Half, a number."
    assert example.astext() == ">>> shown(1)\n0.5"
    assert example["language"] == "pycon"


def test_no_letter_of_a_docstring_is_lost():
    """Of all that the page shows."""
    for _, path in api.modules(ROOT / api.PACKAGE):
        for call, said in api.public(path.read_text("utf-8")):
            shown = " ".join(part.astext() for part in drawn(said))
            letters = re.findall(r"\w", said)
            assert re.findall(r"\w", shown) == letters, call


@pytest.mark.parametrize(
    ("tests", "rows"),
    [
        *zip(
            OF,
            (
                read_ledger(ROOT / "book" / "claims"),
                read_record(ROOT / "book" / "conclusions"),
            ),
            strict=True,
        )
    ],
    ids=["claims", "conclusions"],
)
def test_every_test_that_a_row_names_has_its_place(tests, rows):
    folder = ROOT / tests.folder
    places = {
        (claim_tests.chapter_of(path.relative_to(folder)), name)
        for path in folder.rglob("test_*.py")
        for name, _ in claim_tests.pieces(path.read_text("utf-8"))
    }
    assert places
    assert {(row.chapter, row.test) for row in rows if row.test} <= places


def test_a_file_is_cut_before_what_decorates_a_test():
    text = "import x\n\n@mark\ndef test_a():\n    pass\n\ny = 1\npass"
    (_, before), (name, test), (none, after) = claim_tests.pieces(text)
    assert (before, name) == ("import x", "test_a")
    assert test.startswith("@mark") and test.endswith("pass")
    assert (none, after) == ("", "y = 1\npass")  # not of the test before it


def test_tests_on_end_leave_nothing_between_them():
    text = "def test_a():\n    pass\n\n\ndef test_b():\n    pass\n"
    names = [name for name, _ in claim_tests.pieces(text)]
    assert names == ["test_a", "test_b"]


def test_the_title_of_what_follows_stands_above_it():
    """Under a test, it would be a title of nothing."""
    folders = [ROOT / tests.folder for tests in OF]
    for path in (path for one in folders for path in one.rglob("test_*.py")):
        for _, text in claim_tests.pieces(path.read_text("utf-8")):
            assert not text.splitlines()[-1].startswith("#"), text[-80:]


def test_what_a_module_is_about_is_read_as_its_docstrings_are(tmp_path):
    """Two said who *it* is with their stars."""
    package = tmp_path / api.PACKAGE
    package.mkdir(parents=True)
    text = '"""Who *it*\nis."""\n\ndef one():\n    """One."""\n'
    (package / "who.py").write_text(text)
    files = {"a.md": "# A\n\n```{api}\n```\n"}
    (page,) = built(tmp_path, files, ["a"], extensions=["api"])
    (told,) = [p for p in page.select("p") if "Who" in p.get_text()]
    assert told.em.get_text() == "it" and told.get_text() == "Who it is."


def test_several_words_are_emphasised_and_starred_names_are_not():
    """``*previous-token score*`` stood there with its stars."""
    (said,) = drawn("Its *previous-token score*, of *all*; *args, **kw, W * x")
    told = [x.astext() for x in said.findall(nodes.emphasis)]
    assert told == ["previous-token score", "all"]
    assert said.astext().endswith("; *args, **kw, W * x")


def test_one_axis_has_no_blank_before_its_name():
    """jaxtyping wants one, which is a reader's puzzle."""
    text = "def of(x: Float[Tensor, ' n']) -> Int[Tensor, 'n d']:\n  'A word.'"
    ((call, _),) = api.public(text)
    assert call == "def of(x: Float[Tensor, 'n']) -> Int[Tensor, 'n d']"
