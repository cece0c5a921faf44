"""The table of corruptions says what the ledger does, and sums up."""

import corruptions
import pytest
from docutils import nodes

from tools.measure.provenance import ROOT


@pytest.fixture(scope="module")
def held():
    return corruptions.half(ROOT)


def test_every_kind_has_a_row_that_adds_up(held):
    rows = corruptions.rows(held["kinds"])
    assert {row[0] for row in rows} == set(held["kinds"])
    for _, tried, tests, shown, missed, caught in rows:
        assert int(tried) == int(tests) + int(shown) + int(missed)
        assert caught.startswith(f"{1 - int(missed) / int(tried):.0%} (")


def test_the_worst_come_last(held):
    shares = [int(r[4]) / int(r[1]) for r in corruptions.rows(held["kinds"])]
    assert shares == sorted(shares)


def test_the_table_has_the_words_of_its_rows(held):
    body = corruptions.edited(held["harmless"])
    drawn = corruptions.table(corruptions.EDITS, body)
    words = [entry.astext() for entry in drawn.findall(nodes.entry)]
    assert words == [*corruptions.EDITS, *(x for row in body for x in row)]
