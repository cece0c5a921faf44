"""The strips and the page of conclusions, in a small book of two pages."""

from pathlib import Path

import pytest
from conclusions import as_title, folded, listed, parted
from record import read_record
from small_book import built

ROOT = Path(__file__).resolve().parents[2]
RECORD = """
[[conclusion]]
id = "chapter-wide"
says = "*Wider* is better"
from = "widths"
held = {heads = 1}
over = ["seed"]
not_in = [{rate = 0.1, width = 8}]
instead = "at a rate of .1 it is not"
instead_of = "more weights: half of them were frozen"
test = "test_wider"
varied = {rate = [0.01, 0.03, 0.1], width = [8, 16, 32]}

[[conclusion]]
id = "chapter-sum"
says = "The rows sum to $1$"
proved = true
test = "test_sum"
"""
PAGE = """# Chapter

[*Wider* is better](conclusions.md#chapter-wide), so they say.

[The rows sum to $1$](conclusions.md#chapter-sum).
"""


def build(folder, page):
    """Build a book of one chapter; what was wrong, or its pages."""
    files = {
        "conclusions/chapter.toml": RECORD,
        "conclusions.md": "# Conclusions\n\n```{conclusions-record}\n```\n",
        "chapter.md": page,
    }
    return built(
        folder,
        files,
        ["chapter", "conclusions"],
        extensions=["conclusions"],
        myst_enable_extensions=["dollarmath"],
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return build(tmp_path_factory.mktemp("book"), PAGE)


def test_a_sentence_is_no_link_and_its_strip_leads_to_the_row(pages):
    strip, proof = pages[0].select("a.conclusion")
    assert strip["href"] == "conclusions.html#chapter-wide"
    assert strip.get_text(strip=True) == "held in 8 of 9 settings"
    assert proof.get_text(strip=True) == "proved"
    sentence = strip.find_parent("p").get_text(" ", strip=True)
    assert sentence.startswith("Wider is better held in 8")
    assert not strip.select("em")


def test_a_mark_a_setting_is_filled_where_it_held(pages):
    for page in pages:
        marks = page.select_one("svg.conclusion-strip").select("rect")
        filled = [mark["class"] == ["held"] for mark in marks]
        assert filled == [True] * 6 + [False, True, True]


def test_the_first_strip_that_is_not_folded_says_what_a_mark_is(tmp_path):
    wide = "[So](conclusions.md#chapter-wide) it is.\n"
    sum_ = "[They do](conclusions.md#chapter-sum).\n"
    titles = ("Aside (second reading)", "Proof", "First", "Then")
    parts = zip(titles, (wide, sum_, wide, wide), strict=True)
    page = "\n".join(f"## {title}\n\n{text}" for title, text in parts)
    (page, _) = build(tmp_path, f"# Chapter\n\n{page}")
    (legend,) = page.select(".conclusion-legend")
    assert "filled where it held" in legend.get_text()
    assert legend.find_parent("section").h2.get_text().startswith("First")
    told = [strip.get("title") for strip in page.select("a.conclusion")]
    first, proof, *others = told
    assert proof is None
    assert {first, *others} == {legend.get_text().strip("()")}


def test_the_page_has_all_that_is_known_of_a_row(pages):
    row = pages[1].select_one("[id='chapter-wide']")
    text = row.get_text(" ", strip=True)
    for words in (
        "the runs of widths",
        "in common: heads 1",
        "rate 0.01\N{NO-BREAK SPACE}/ 0.03\N{NO-BREAK SPACE}/ 0.1, width",
        "over every: seed",
        "did not hold at: rate 0.1, width 8",
        "at a rate of .1 it is not",
        "instead of: more weights",
        "test_wider",
    ):
        assert words in text
    proof = pages[1].select_one("[id='chapter-sum']")
    assert "proved" in proof.get_text() and proof.select(".math")


def test_the_test_of_a_row_is_a_link_to_its_code(pages):
    """It was a name, to be looked for in the repository."""
    rows = pages[1].select(".conclusion-row")
    links = [row.select_one("li a:has(code)") for row in rows]
    assert [link and (link.get_text(), link["href"]) for link in links] == [
        ("test_wider", "conclusion-tests.html#chapter-test-wider"),
        ("test_sum", "conclusion-tests.html#chapter-test-sum"),
    ]


@pytest.mark.parametrize(
    ("says", "title"),
    [
        ("it holds.", "It holds"),
        ("*wider* is better", "*Wider* is better"),
        ("$n$ is short, wherever", "$n$ is short, wherever"),
        ("Already so", "Already so"),
    ],
)
def test_a_part_of_a_sentence_is_a_title(says, title):
    assert as_title(says) == title


def test_a_link_to_an_unknown_conclusion_fails_the_build(tmp_path):
    page = "# Chapter\n\n[so](conclusions.md#chapter-none)\n"
    assert "no conclusion chapter-none in the record" in build(tmp_path, page)


def test_a_row_that_lacks_something_is_named(tmp_path):
    (tmp_path / "chapter.toml").write_text('[[conclusion]]\nid = "x"\n')
    with pytest.raises(ValueError, match=r"chapter.toml x: .* missing"):
        read_record(tmp_path)


def test_rows_stand_under_the_title_of_their_chapter(pages):
    """It was the name of a file, `Efficient/flash`, in no order."""
    headings = [h2.get_text() for h2 in pages[1].select("h2")]
    assert [heading.strip("#¶ ") for heading in headings] == ["Chapter"]


def test_names_of_sizes_stay_as_they_are():
    """A reader met `d head 64`."""
    setting = {"d_head": 64, "n_q": 3, "batch_size": [2, 4]}
    kept = "2\N{NO-BREAK SPACE}/ 4"  # no line begins with a stroke
    assert listed(setting) == f"d_head 64, n_q 3, batch size {kept}"


@pytest.mark.parametrize(
    ("many", "seen", "more"), [(6, 6, 0), (8, 8, 0), (21, 6, 15)]
)
def test_a_wall_of_settings_is_folded_behind_the_first(many, seen, more):
    """Twenty-one of them were twenty-six lines."""
    settings = [f"width {i}" for i in range(many)]
    first, *others = parted(settings)
    assert first.split("; ") == settings[:seen]
    assert bool(others) == bool(more)
    for words in others:
        fold = folded(words).astext()
        assert f"<summary>{more} more</summary>" in fold
        assert "; ".join(settings[seen:]) in fold
