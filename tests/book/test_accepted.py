"""What no machine computes is as it was read and accepted."""

from pathlib import Path

import pytest

from tools.accepted import suite
from tools.accepted.record import RECORD, facts, unaccepted

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def known():
    return facts(ROOT)


def test_every_fact_is_as_it_was_accepted(known):
    """Each of them: a number, a formula, a verdict, a question, a picture."""
    found = [x for name in known for x in unaccepted(ROOT, name, known[name])]
    assert found == []


def test_every_record_is_of_something(known):
    there = {path.stem for path in (ROOT / RECORD).glob("*.txt")}
    assert there == {*known, "suite"}


def test_the_suite_tests_no_less_than_it_did():
    """What may go is named in CHANGELOG.md; then `make accept`."""
    assert list(suite.shrinking(ROOT)) == []
