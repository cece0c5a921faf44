"""The README and the book's pages: what they show is run, or is no code."""

import json
import re
from pathlib import Path

import pytest
from counts import COUNTS
from guards import prose
from ledger import VERDICTS

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
PAGES = sorted(BOOK.rglob("*.md"))
ALL = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def text_of(path):
    return path.read_text("utf-8")


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_python_on_a_page_is_an_example_that_is_run(path):
    assert prose.python_not_run(text_of(path)) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_code_block_of_the_book_is_an_example(path):
    assert prose.blocks_not_run(text_of(path)) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_number_of_a_page_is_in_its_examples(path):
    assert prose.unheld_in_page(text_of(path)) == []


def test_code_that_is_not_run_is_found():
    assert prose.python_not_run("```python\n1 / 3\n```\n")
    assert prose.python_not_run("```python\n>>> 1 / 1\n1.0\n\n```\n") == []
    assert prose.blocks_not_run("```bash\nmake\n```\n")
    assert prose.blocks_not_run("```{claims-ledger}\n```\n") == []
    assert prose.python_not_run("```python\n>>> 1 / 1\n1.0\n```\n")


def test_a_number_that_no_example_holds_is_found():
    example = "```python\n>>> 1 / 4\n0.25\n\n```\n"
    assert prose.unheld_in_page(f"A quarter is 0.26.\n\n{example}")
    assert prose.unheld_in_page(f"A quarter is 0.25.\n\n{example}") == []


def test_what_a_page_counts_can_be_counted():
    used = {
        name
        for path in PAGES
        for name in re.findall(r"\{count\}`([^`]+)`", text_of(path))
    }
    assert used
    assert used <= set(COUNTS)


def test_the_promise_has_one_wording():
    promise = re.search(
        r"Its promise: \*\*(.+)\*\*", text_of(BOOK / "intro.ipynb")
    )
    first = text_of(BOOK / "how-it-is-verified.md").splitlines()[2]
    assert first.lower().startswith(promise[1].lower())


def test_the_counts_are_those_of_the_files():
    """Counted anew, from the text of the files."""
    rows = "".join(
        path.read_text() for path in (BOOK / "claims").rglob("*.toml")
    )
    count = {name: counted(BOOK) for name, counted in COUNTS.items()}
    files = list((BOOK / "conclusions").rglob("*.toml"))
    rows_of_ours = "".join(path.read_text() for path in files)
    assert count["conclusions"] == rows_of_ours.count("[[conclusion]]")
    assert count["chapters with conclusions"] == len(files)
    assert count["claims"] == rows.count("[[claim]]")
    assert count["claims with a test"] == rows.count("\ntest = ")
    assert count["claims without a test"] == rows.count("\nreason = ")
    assert count["wrong claims"] == rows.count('verdict = "wrong"')
    by_verdict = (
        "wrong claims",
        "contradicting claims",
        "claims with a caveat",
        "claims not reproducible",
        "claims that hold",
    )
    assert len(by_verdict) == len(VERDICTS)
    assert sum(count[name] for name in by_verdict) == count["claims"]
    texts = [text_of(path) for path in BOOK.rglob("*.ipynb")]
    assert count["notebooks"] == len(texts)
    cells = "".join(texts).count('"cell_type": "code"')
    assert count["code cells"] == cells
    assert count["figures"] == "".join(texts).count('"image/png": "')
    assert count["cells not compared"] == json.dumps(texts).count(
        "nbval-ignore-output"
    )


def test_no_title_of_a_work_has_tex_in_it():
    """One was printed with its dollars."""
    text = (ROOT / "book/references.bib").read_text("utf-8")
    assert "$" not in text
