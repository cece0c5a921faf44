"""An edit of what no machine computes is red until it is accepted."""

import pytest

from tools.accepted import suite
from tools.accepted.facts import of_text
from tools.accepted.pages import sections
from tools.accepted.record import unaccepted, write

TEXT = """\
It takes 9 min at $d_k = 64$, −.416 of ten; `x[1:]` is
[wrong](claims.md#004-028), says {cite:t}`a2017`.

| here | also |
|---|---|
| √d | 1/2 |
"""
SOUND = """\
LIMITS = [1e-3]

@pytest.mark.parametrize("n", [1, 2, 3])
def test_a(n):
    assert_close(n, n, atol=1e-6)
    assert n < 4

def test_b():
    assert True
"""


@pytest.mark.parametrize(
    ("was", "becomes", "kind"),
    [
        ("9 min", "9 s", "numbers"),
        ("−.416", ".416", "numbers"),
        ("ten", "two", "numbers"),
        ("x[1:]", "x[2:]", "numbers"),
        ("d_k = 64", "d_k = 32", "formulas"),
        ("004-028", "004-029", "links"),
        ("a2017", "b2017", "links"),
        ("| √d", "| d", "tables"),
    ],
)
def test_an_edit_that_nobody_read_is_red(tmp_path, was, becomes, kind):
    (tmp_path / "tests").mkdir()
    write(tmp_path, "page", of_text(TEXT))
    assert list(unaccepted(tmp_path, "page", of_text(TEXT))) == []
    broken = of_text(TEXT.replace(was, becomes))
    (found,) = unaccepted(tmp_path, "page", broken)
    assert found.startswith(f"page: {kind}: has changed; read it again")


def test_other_words_are_no_edit_of_a_fact():
    again = "And so\n\nit  takes" + TEXT.removeprefix("It takes")
    assert of_text(again) == of_text(TEXT)


def test_a_section_keeps_its_name_wherever_it_stands():
    text = "# A\n\n## B\n\n### C\n1\n#### Solution\n2\n## D\n### Solution\n3"
    cells = [{"cell_type": "markdown", "source": text}]
    names = [name for name, _ in sections(cells)]
    assert names == ["", "A", "B", "C", "C / Solution", "D", "Solution"]


@pytest.fixture
def tree(tmp_path):
    """A suite of one file, on record; and a way to write the file anew."""
    (tmp_path / "tests/accepted").mkdir(parents=True)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n")
    path = tmp_path / "tests/test_x.py"
    path.write_text(SOUND)
    suite.write(tmp_path, suite.suite(tmp_path))

    def less(was, becomes):
        path.write_text(SOUND.replace(was, becomes))
        return dict(suite.shrinking(tmp_path))

    assert less("", "") == {}
    return tmp_path, less


@pytest.mark.parametrize(
    ("was", "becomes", "how"),
    [
        ("[1, 2, 3]", "[1, 2]", "2 of 3 cases"),
        ("    assert n < 4\n", "", "1 of 2 asserts"),
        ("atol=1e-6", "atol=1e-3", "another bound than 1e-06"),
        ("n < 4", "n < 4000", "another bound than 4"),
        ("def test_a(", "def tested(", "gone"),
    ],
)
def test_a_suite_that_shrinks_is_red(tree, was, becomes, how):
    assert tree[1](was, becomes) == {"tests/test_x.py::test_a": how}


def test_a_looser_constant_is_red(tree):
    found = tree[1]("[1e-3]", "[1.0]")
    assert found == {"tests/test_x.py::constants": "another bound than 0.001"}


def test_a_suite_may_grow(tree):
    assert tree[1]("def test_b", "def test_c():\n    f()\n\ndef test_b") == {}


def test_a_test_is_let_go_when_the_changelog_names_it(tree):
    root, less = tree
    assert less("def test_b():\n    assert True\n", "")
    assert list(suite.let_go(root)) == ["tests/test_x.py::test_b"]
    (root / "CHANGELOG.md").write_text("- `test_b` went: it said nothing.\n")
    assert list(suite.let_go(root)) == []
