"""What folds, and the glossary, in a small book of two pages."""

from pathlib import Path

import pytest
from docutils import nodes
from docutils.utils import new_document
from folds import Folds, fold
from glossary import read_glossary
from small_book import built

ROOT = Path(__file__).resolve().parents[2]
LEDGER = """
[[claim]]
id = "002-032"
place = "L166"
quote = "one"
verdict = "wrong"
statement = "Two."
test = "test_two"

[[claim]]
id = "000-017"
place = "L37"
quote = "three"
verdict = "holds"
statement = "Three."
reason = "convention"
"""
TERMS = """
[[term]]
name = "causal mask"
says = "Hides what comes after."
chapter = "chapter"
"""
PAGE = """# Chapter

A [causal mask](glossary.md#causal-mask).

> **Claims settled.** [Two](claims.md#002-032), [again](claims.md#002-032),
> and [three](claims.md#000-017).

> **Predict.** This is not folded.

## Details (second reading)

Behind a line.

### Within

More.

:::{admonition} Answer
:class: answer
It is four.
:::

#### Solution

Nine, because

- it is odd.

:::{admonition} Answer
:class: answer
Three times three.
:::

As was asked.

## Summary

**Claims settled here:**

| claim | what is so |
|---|---|
| [Two](claims.md#002-032) | so |

The end.
"""


def build(folder, page):
    """Build a book of one chapter; what was wrong, or its pages."""
    files = {
        "claims/chapter.toml": LEDGER,
        "claims.md": "# Claims\n\n```{claims-ledger}\n```\n",
        "glossary.toml": TERMS,
        "glossary.md": "# Glossary\n\n```{glossary-terms}\n```\n",
        "chapter.md": page,
    }
    return built(
        folder,
        files,
        ["chapter", "glossary"],
        extensions=["claims", "terms", "folds"],
        myst_enable_extensions=["colon_fence"],
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return build(tmp_path_factory.mktemp("book"), PAGE)


def test_claims_are_one_line_that_counts_them_and_is_closed(pages):
    box, table = pages[0].select("details.claims-box")
    line = "claims of introductions settled here"
    assert box.summary.get_text() == f"2 {line}"
    assert table.summary.get_text() == f"1 {line}".replace("claims", "claim")
    assert not box.has_attr("open") and not table.has_attr("open")
    assert len(box.select("a.claim .verdict")) == 3
    assert table.select("table") and "The end" not in table.get_text()


def test_a_prediction_is_not_folded(pages):
    (quote,) = (q for q in pages[0].select("blockquote") if q.strong)
    assert "Predict" in quote.get_text() and not quote.find_parent("details")


def test_a_second_reading_is_folded_under_its_title(pages):
    section = pages[0].select_one("section.on-second-reading")
    assert section.h2.get_text().startswith("Details")
    assert "second reading" not in section.h2.get_text()
    (folded,) = section.find_all("details", recursive=False)
    assert folded.summary.get_text() == "Second reading"
    assert folded.select_one("section#within h3")
    answer = folded.select_one("details.answer")
    assert answer.summary.get_text() == "Answer"
    assert "It is four." in answer.get_text()


def test_what_a_solution_says_is_folded_and_its_title_is_seen(pages):
    section = pages[0].select_one("section#solution")
    assert section.h4.find_parent("details", class_="answer") is None
    folds = section.find_all("details", recursive=False)
    assert [fold["class"] for fold in folds] == [["answer"]] * 3
    assert [fold.summary.get_text() for fold in folds] == ["Answer"] * 3
    said = [" ".join(fold.get_text().split()) for fold in folds]
    assert said[0] == "Answer Nine, because it is odd."
    assert said[1:] == ["Answer Three times three.", "Answer As was asked."]
    assert [part.name for part in section.find_all(recursive=False)] == [
        "h4", *["details"] * 3,
    ]  # fmt: skip


def test_the_remedy_of_what_is_to_be_mended_is_folded():
    seen, told = (
        nodes.container("", nodes.Text(name), classes=[name])
        for name in ("cell_input", "cell_output")
    )
    cell = nodes.container("", seen, told, classes=["cell"])
    title = nodes.title("", "Fix: one line")
    asked = nodes.paragraph("", "It is late.")
    document = new_document("chapter")
    document += nodes.section("", title, asked, cell)
    Folds(document).run()
    first, last = cell.children
    assert first is seen and isinstance(last, fold)
    assert last.children == [told] and "open" not in last


def cell(source, *printed):
    """A cell of a page, with what it printed."""
    parts = [("cell_input", source), *(("cell_output", p) for p in printed)]
    return nodes.container(
        "",
        *(
            nodes.container("", nodes.Text(text), classes=[name])
            for name, text in parts
        ),
        classes=["cell"],
    )


def test_what_a_page_imports_is_one_line_before_its_first_idea():
    """A screen of imports stood there, and of seeds."""
    first, second = cell("import torch"), cell("torch.manual_seed(0)")
    third, later = cell("from math import pi\npi", "3.14"), cell("import ast")
    document = new_document("chapter")
    title = nodes.title("", "Chapter")
    document += nodes.section("", title, first, second, third, later)
    Folds(document).run()
    section = document[0]
    folded = section[1]
    assert isinstance(folded, fold) and folded["line"].startswith("Imports")
    assert folded.children == [first, second]
    assert section.children == [title, folded, third, later]


def test_what_a_page_begins_with_is_seen_if_it_imports_nothing():
    only = cell("x = 1")
    document = new_document("chapter")
    document += nodes.section("", nodes.title("", "Chapter"), only)
    Folds(document).run()
    assert only.parent is document[0]


def test_a_term_says_what_it_means_and_leads_to_its_entry(pages):
    term = pages[0].select_one("a.term")
    assert term["href"] == "glossary.html#causal-mask"
    assert term["title"] == "Hides what comes after."
    entry = pages[1].select_one("dl.glossary dt#causal-mask")
    said = entry.find_next_sibling("dd")
    assert said.get_text().split() == [
        "Hides",
        "what",
        "comes",
        "after.",
        "Chapter",
    ]
    assert said.select_one("a")["href"] == "chapter.html"


def test_a_link_to_an_unknown_term_fails_the_build(tmp_path):
    said = build(tmp_path, "# Chapter\n\nA [head](glossary.md#head).\n")
    assert "no term head in the glossary" in said


def test_an_entry_that_lacks_something_is_named(tmp_path):
    (tmp_path / "glossary.toml").write_text('[[term]]\nname = "head"\n')
    with pytest.raises(ValueError, match=r"but head: .* missing"):
        read_glossary(tmp_path / "glossary.toml")
