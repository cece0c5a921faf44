"""The ledger of claims: every row a test or a reason, every test a row."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import ledger
import nbformat
import pytest
from guards.claims import (
    ledger_breaks,
    too_many_without_test,
    unheld_in_statements,
    unknown_claims,
)
from guards.prose import cited_claims
from ledger import REASONS, read_ledger

from tools.build.notebooks import in_contents

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "book" / "claims"
TESTS = ROOT / "tests" / "claims"


def test_rows_and_tests_say_the_same():
    assert ledger_breaks(LEDGER, TESTS) == []


def test_a_number_in_a_statement_is_tested_or_computed():
    assert unheld_in_statements(ROOT) == []


def test_the_ledger_is_read_with_python_alone():
    """Not with Sphinx, which only the site needs."""
    alone = [sys.executable, "-I", "-S", ledger.__file__]  # no site-packages
    subprocess.run(alone, check=True, timeout=60)


def test_reasons_are_the_exception():
    assert too_many_without_test(LEDGER) == []


def test_reasons_are_counted(record_property):
    count = Counter(row.reason for row in read_ledger(LEDGER) if row.reason)
    for reason, rows in sorted(count.items()):
        record_property(reason, rows)
    assert set(count) <= REASONS


def test_every_chapter_of_the_ledger_is_in_the_book():
    chapters = {row.chapter for row in read_ledger(LEDGER)}
    pages = {
        path.relative_to(ROOT / "book").with_suffix("").as_posix()
        for path in in_contents(ROOT)
    }
    assert chapters <= pages


@pytest.mark.parametrize("path", in_contents(ROOT), ids=lambda path: path.stem)
def test_every_claim_that_a_page_mentions_is_in_the_ledger(path):
    cited = cited_claims(nbformat.read(path, as_version=4))
    assert unknown_claims(LEDGER, cited) == []
