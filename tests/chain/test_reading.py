"""A first reading that is too long, or a term too early, is red."""

from pathlib import Path

import nbformat
import pytest
from glossary import Term
from guards import reading
from guards.terms import faults, term_breaks
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).resolve().parents[2]
RECALL = """
:::{admonition} Recall
- Three tokens, *the cat sat*.
- Queries: (1, 0), (0, 2), (2, 1).
- Keys: (1, 1), (2, 0), (0, 1).
- Values: (1, 0), (0, 2), (3, 1).
- Scores, $QK^\\top$: (1, 2, 0), (2, 0, 2), (3, 4, 1).
- Weights: (.284, .576, .140), (.446, .108, .446), (.306, .620, .074).
:::
"""
FORMULA = "## The equation\n\nIt is\n\n$$\na = b\n$$\n"


def chapter(*texts):
    return new_notebook(cells=[new_markdown_cell(text) for text in texts])


def test_only_the_main_way_is_counted():
    notebook = chapter(
        "# A title\n\nIt is $a + b$, [so](claims.md#000-001).",
        "> **Claim settled.** Not counted.\n> Nor this.\n\n> Counted, though.",
        "## More (second reading)\n\nNot counted.\n\n### Nor this\n\nNor.",
        "## Again\n\n:::{admonition} Answer\n:class: answer\nNo.\n:::",
        "**Claims settled here:**\n\n| a | b |\n|---|---|\n\nCounted.",
        "## Exercises\n\n### Build\n\nNot counted.\n\n## The end",
    )
    assert list(reading.main_way(notebook)) == [
        "# A title",
        "It is $a + b$, [so](claims.md#000-001).",
        "> Counted, though.",
        "## Again",
        "Counted.",
        "## The end",
    ]
    counted = map(reading.words, reading.main_way(notebook))
    assert list(counted) == [2, 4, 2, 1, 1, 2]


def test_a_chapter_that_is_too_long_is_red():
    long = chapter("word " * reading.MOST_WORDS)
    assert reading.too_long("one", long) == []
    long.cells[0].source += "more"
    assert reading.too_long("one", long) == ["one: 3501 words"]


def test_a_first_reading_that_is_slow_is_red(monkeypatch):
    monkeypatch.setattr(reading, "TIMED", {"one"})
    monkeypatch.setattr(reading, "SLOW", set())
    words = 200 * (reading.MOST_MINUTES - 1)
    slow = chapter("# A title", "word " * (words - 2))
    slow.cells += [new_code_cell("x = 1\n\n" * 12)]
    assert reading.too_slow("one", slow) == []
    assert reading.too_slow("another", chapter("word " * 10_000)) == []
    slow.cells[-1].source += "x\nx\n"
    assert reading.too_slow("one", slow) == ["one: 30.2 minutes"]
    slow.cells[-1].metadata["tags"] = ["hide-input"]
    assert reading.too_slow("one", slow) == []


@pytest.mark.parametrize("name", sorted(reading.TIMED - reading.SLOW))
def test_a_chapter_that_grows_again_is_red(name):
    notebook = nbformat.read(ROOT / "book" / f"{name}.ipynb", as_version=4)
    assert reading.too_slow(name, notebook) == []
    first = notebook.cells[0].source
    notebook.cells[0].source = first + "\n\n" + "more " * 2000
    assert "minutes" in reading.too_slow(name, notebook)[0]


def test_an_equation_that_is_late_or_lacks_is_red():
    assert reading.equation_late("one", chapter(FORMULA)) == []
    late = chapter("word " * reading.EQUATION_BY, FORMULA)
    assert "word 904" in reading.equation_late("one", late)[0]
    assert reading.equation_late("one", chapter("$$\na = b\n$$"))


def test_a_chapter_that_is_listed_and_keeps_the_rule_is_red(monkeypatch):
    monkeypatch.setattr(reading, "TOO_LONG", {"one"})
    assert "a rule that it keeps" in reading.too_long("one", chapter("x"))[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(0, 2), (2, 1)", "(0, 2), (2, 2)"),
        (".620", ".621"),
        ("(1, 2, 0), ", ""),
        ("- Values", "- Three: four.\n- Values"),
    ],
)
def test_a_box_that_recalls_something_else_is_red(old, new):
    assert reading.no_recall("one", chapter(RECALL)) == []
    assert old in RECALL
    assert reading.no_recall("one", chapter(RECALL.replace(old, new, 1)))


def test_a_term_before_its_mark_is_red():
    term = Term("causal mask", "", "two", ["causal masks"])
    mark = "A [causal mask](glossary.md#causal-mask). Causal masks hide."
    texts = {"one": "No such thing as a `causal mask`.", "two": mark}
    assert list(faults(term, texts)) == []
    early = {"one": "The Causal masks.", "two": mark}
    assert "used in one, before it" in next(faults(term, early))
    before = {"one": "", "two": f"A causal mask. {mark}"}
    assert "used before it is explained" in next(faults(term, before))
    assert "not marked" in next(faults(term, {"two": "A causal mask."}))


def test_a_link_to_no_term_is_red(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "_toc.yml").write_text(
        "root: book/intro\nparts: [{chapters: [{file: book/one}]}]\n"
    )
    (tmp_path / "book/glossary.toml").write_text(
        '[[term]]\nname = "mask"\nsays = "Hides."\nchapter = "one"\n'
    )
    page = chapter("A [mask](glossary.md#mask), a [head](glossary.md#head).")
    nbformat.write(page, tmp_path / "book/one.ipynb")
    assert term_breaks(tmp_path) == ["one: head is in no glossary"]
