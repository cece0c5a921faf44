"""Edits that ought to pass: other words, a paragraph, a line, a place."""

import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tools.measure.corruptions import texts
from tools.measure.corruptions.corruption import Corruption, harmless
from tools.measure.corruptions.texts import Piece

SAME = (
    ("shows", "tells"),
    ("so", "therefore"),
    ("here", "in this place"),
    ("only", "merely"),
    ("large", "big"),
    ("but", "yet"),
    ("again", "once more"),
    ("usually", "as a rule"),
    ("gets", "receives"),
    ("wrong", "mistaken"),
)
WORDS = "Take your time over this; it is worth reading slowly, with a pencil."


def edit(rule: str, piece: Piece, text: str, was: str) -> Corruption:
    """A harmless edit of one text."""
    return Corruption(
        "harmless",
        rule,
        piece.place,
        was,
        rule,
        {piece.path: partial(piece.put, text)},
    )


@harmless("a sentence in other words")
def reworded(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """A word for another that means the same."""
    for piece in texts.cells(root):
        free = texts.outside(
            piece.text, texts.FENCE, texts.MATHS, texts.CODE, texts.LINKED
        )
        for was, becomes in SAME:
            for match in re.finditer(rf"\b{was}\b", piece.text):
                inside = re.search(r"[\[|#]", piece.text.split("\n\n")[0])
                if free(match.start()) and not inside:
                    text = texts.replaced(piece.text, match, becomes)
                    yield edit("other words", piece, text, was)


@harmless("a new paragraph")
def paragraph(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """A paragraph more at the end of a cell."""
    for piece in texts.cells(root):
        text = f"{piece.text}\n\n{WORDS}"
        yield edit("a new paragraph", piece, text, piece.text[-40:])


@harmless("a blank line")
def blank(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """One blank line more between paragraphs, or a line broken."""
    for piece in texts.cells(root):
        if "\n\n" in piece.text:
            text = piece.text.replace("\n\n", "\n\n\n", 1)
            yield edit("a blank line", piece, text, piece.text[-40:])
        for match in re.finditer(r"(?<=\w) (?=[a-z]{4})", piece.text):
            row = piece.text[: match.start()].rpartition("\n")[2]
            if not re.match(r"[|#>-]|\s", row):
                text = texts.replaced(piece.text, match, "\n")
                yield edit("a line broken", piece, text, match.group())
                break


@harmless("a moved section")
def moved(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Two neighbouring paragraphs of words, or two pages' sections."""
    for name, notebook in texts.notebooks(root):
        cells = notebook["cells"]
        starts = [
            place
            for place, cell in enumerate(cells)
            if cell["cell_type"] == "markdown"
            and "".join(cell["source"]).lstrip().startswith("## ")
        ]
        for a, b, c in zip(starts, starts[1:], starts[2:], strict=False):
            if any(cell["cell_type"] == "code" for cell in cells[a:c]):
                continue
            order = [*cells[:a], *cells[b:c], *cells[a:b], *cells[c:]]
            text = texts.notebook_text({**notebook, "cells": order})
            title = "".join(cells[a]["source"])[:40]
            yield Corruption(
                "harmless",
                "a moved section",
                f"{name}: cell {cells[a]['id']}",
                title,
                "after the next",
                {name: text},
            )


@harmless("a comment in the code")
def comment(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """A blank line or a comment more in a module or a test."""
    patterns = ("src/selfattn/**/*.py", "tests/**/test_*.py")
    for piece in texts.files(root, *patterns):
        text = piece.text.rstrip("\n") + "\n\n\n# The end of the module.\n"
        yield edit("a comment", piece, text, piece.path)


@harmless("a test more")
def test(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """One more test in a file of the suite."""
    for piece in texts.files(root, "tests/**/test_*.py"):
        if "/claims/" in piece.path or "/conclusions/" in piece.path:
            continue
        more = "\n\ndef test_one_more():\n    assert len([1, 2]) == 2\n"
        yield edit("a test more", piece, piece.text + more, piece.path)


@harmless("a sentence on a page")
def page(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """A sentence more on a page that is no notebook, or in the README."""
    for piece in texts.files(root, "README.md", "book/*.md", "CHANGELOG.md"):
        for match in re.finditer(r"(?<=[a-z]\.)\n\n(?=[A-Z])", piece.text):
            text = texts.replaced(piece.text, match, f" {WORDS}\n\n")
            yield edit("a sentence on a page", piece, text, piece.path)
