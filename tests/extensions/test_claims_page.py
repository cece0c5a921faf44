"""The badges and the page of claims, in a small book of two pages."""

from pathlib import Path

import pytest
from ledger import read_ledger
from small_book import built

ROOT = Path(__file__).resolve().parents[2]
LEDGER = """
[[claim]]
id = "002-032"
place = "L166 vs L126"
quote = '"mat" weights'
verdict = "wrong"
statement = "A softmax keeps the order of its scores."
test = "test_order"

[[claim]]
id = "000-017"
place = "L37-41"
quote = "What information do I offer?"
verdict = "holds"
statement = "A picture, not a fact."
reason = "convention"
"""


def build(folder, link):
    """Build a book whose one chapter has the link; errors, or its pages."""
    files = {
        "claims/chapter.toml": LEDGER,
        "claims.md": "# Claims\n\n```{claims-ledger}\n```\n",
        "chapter.md": f"# Chapter\n\nSome say {link}.\n",
    }
    return built(folder, files, ["chapter", "claims"], extensions=["claims"])


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    return build(folder, "*that*: [the words](claims.md#002-032)")


def test_a_link_to_a_claim_shows_its_verdict_and_its_test(pages):
    badge = pages[0].select_one("a.claim")
    assert badge["href"] == "claims.html#002-032"
    assert badge.get_text() == "the words wrong"
    assert badge.select_one(".verdict-wrong").get_text() == "wrong"
    test = pages[0].select_one(".claim-mention .claim-test")
    assert test.get_text() == " test_order"


def test_errors_come_first_and_every_row_can_be_linked_to(pages):
    titles = [h.get_text().rstrip("¶#") for h in pages[1].select("h2")]
    assert [title.strip("\uf0c1") for title in titles] == ["Wrong", "Holds"]
    rows = pages[1].select("section table.claims tbody tr")
    first = next(row for row in rows if row.select_one("[id='002-032']"))
    text = first.get_text(" ", strip=True)
    assert "source 2, lines 166 and 126: “‘mat’ weights”" in text
    assert "test_order" in text
    assert first.select_one("a[href='chapter.html']").get_text() == "Chapter"
    last = pages[1].select_one("[id='000-017']").find_parent("tr")
    assert "lines 37–41" in last.get_text()
    assert "no test: convention" in last.get_text()


def test_the_page_counts_its_rows_by_source(pages):
    table = pages[1].select_one("table.claims-count")
    counts = [
        [cell.get_text(strip=True) for cell in row.select("td")]
        for row in table.select("tbody tr")
    ]
    assert counts == [
        ["wrong", "0", "0", "1", "0", "0", "1"],
        ["holds", "1", "0", "0", "0", "0", "1"],
    ]


def test_a_link_to_an_unknown_claim_fails_the_build(tmp_path):
    said = build(tmp_path, "[so](claims.md#002-999)")
    assert "no claim 002-999 in the ledger" in said


def test_a_row_that_lacks_something_is_named(tmp_path):
    (tmp_path / "chapter.toml").write_text('[[claim]]\nid = "000-017"\n')
    with pytest.raises(ValueError, match=r"chapter.toml 000-017: .* missing"):
        read_ledger(tmp_path)
