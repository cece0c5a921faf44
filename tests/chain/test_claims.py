"""A ledger and tests that say different things are red."""

import shutil
from pathlib import Path

import pytest
from guards.claims import ledger_breaks, unheld_in_statements

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def claims(tmp_path):
    """A copy of the ledger and of its tests, to be broken."""
    shutil.copytree(ROOT / "book" / "claims", tmp_path / "ledger")
    shutil.copytree(
        ROOT / "tests" / "claims",
        tmp_path / "tests",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    ledger = tmp_path / "ledger" / "dot_product.toml"
    tests = tmp_path / "tests" / "test_dot_product.py"

    def broken(path, old, new):
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), "utf-8")
        return ledger_breaks(ledger.parent, tests.parent)

    assert ledger_breaks(ledger.parent, tests.parent) == []
    return ledger, tests, broken


def test_a_renamed_test_is_red(claims):
    _, tests, broken = claims
    assert broken(tests, "def test_the_shapes(", "def test_shapes(")


def test_an_edited_verdict_is_red(claims):
    ledger, _, broken = claims
    wrong, holds = 'verdict = "wrong"', 'verdict = "holds"'
    assert broken(ledger, wrong, holds)


def test_a_verdict_edited_in_the_test_is_red(claims):
    _, tests, broken = claims
    assert broken(tests, '"004-028", "wrong"', '"004-028", "holds"')


def test_a_row_without_test_and_reason_is_red(claims):
    ledger, _, broken = claims
    assert broken(ledger, 'reason = "convention"\n', "")


def test_a_reason_of_ones_own_is_red(claims):
    ledger, _, broken = claims
    assert broken(ledger, 'reason = "convention"', 'reason = "no time"')


def test_a_dropped_row_is_red(claims):
    ledger, _, broken = claims
    assert broken(ledger, 'id = "004-028"', 'id = "004-999"')


def test_a_test_that_settles_nothing_any_more_is_red(claims):
    _, tests, broken = claims
    assert broken(tests, '@settles("004-028", "wrong")\n', "")


def test_a_number_in_a_statement_that_nothing_holds_is_red(tmp_path):
    for kept in ("book/claims", "tests/claims"):
        shutil.copytree(ROOT / kept, tmp_path / kept)
    (tmp_path / "book/efficient").mkdir()
    for page in (ROOT / "book").glob("**/*.ipynb"):
        (tmp_path / page.relative_to(ROOT)).symlink_to(page)
    assert unheld_in_statements(tmp_path) == []
    (path,) = [
        path
        for path in (tmp_path / "book/claims").glob("*.toml")
        if 'id = "003-055"' in path.read_text("utf-8")
    ]
    text = path.read_text("utf-8")
    path.write_text(text.replace("65,520", "65,530"), "utf-8")
    (found,) = unheld_in_statements(tmp_path)
    assert found.startswith("003-055: neither its test nor its chapter")
