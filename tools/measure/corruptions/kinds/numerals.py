"""Numbers: the last digit up, another of the chapter, the other sign."""

import random
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path

from tools.measure.corruptions import texts
from tools.measure.corruptions.corruption import Corruption, kind
from tools.measure.corruptions.texts import Piece


def of_pieces(
    name: str, pieces: list[Piece], rng: random.Random
) -> Iterator[Corruption]:
    """Each number of these texts, by three rules."""
    pieces = sorted(pieces, key=lambda piece: piece.path)
    for path, group in groupby(pieces, key=lambda piece: piece.path):
        found = [(p, m) for p in group for m in texts.numerals(p.text)]
        others = sorted({m.group() for _, m in found})
        for piece, match in found:
            was = match.group()
            near = [o for o in others if o != was and o[-1] == was[-1]]
            near = near or [o for o in others if o != was]
            rules = {
                "digit up": texts.digit_up(was),
                "sign turned": texts.turned(was),
                "another of the chapter": rng.choice(near) if near else None,
            }
            for rule, becomes in rules.items():
                if becomes:
                    text = texts.replaced(piece.text, match, becomes)
                    place = f"{piece.where} at {match.start()}"
                    yield Corruption(
                        name,
                        rule,
                        f"{path}: {place}",
                        was,
                        becomes,
                        {path: partial(piece.put, text)},
                    )


def is_table(line: str) -> bool:
    """Whether a line is a row of a table."""
    return line.lstrip().startswith("|")


def lines_of(pieces: Iterator[Piece], wanted: str) -> Iterator[Piece]:
    """The lines of texts that are rows, headings, or neither."""
    for piece in pieces:
        start = 0
        for line in piece.text.splitlines(keepends=True):
            sort = "headings" if line.startswith("#") else "text"
            sort = "tables" if is_table(line) else sort
            end = start + len(line)
            if sort == wanted:
                yield Piece(
                    piece.path,
                    f"{piece.where}+{start}",
                    line,
                    lambda text, p=piece, a=start, b=end: p.put(
                        p.text[:a] + text + p.text[b:]
                    ),
                )
            start = end


@kind("numbers in the text")
def text(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Those of sentences."""
    pieces = list(lines_of(texts.cells(root), "text"))
    return of_pieces("numbers in the text", pieces, rng)


@kind("numbers in tables")
def tables(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Those of rows."""
    pieces = list(lines_of(texts.cells(root), "tables"))
    return of_pieces("numbers in tables", pieces, rng)


@kind("numbers in headings")
def headings(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Those of headings."""
    pieces = list(lines_of(texts.cells(root), "headings"))
    return of_pieces("numbers in headings", pieces, rng)


@kind("numbers in descriptions")
def descriptions(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Those of what describes a figure."""
    return of_pieces("numbers in descriptions", [*texts.alts(root)], rng)


@kind("numbers on pages")
def pages(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Those of the README and of pages that are no notebooks."""
    pieces = list(texts.files(root, "README.md", "book/*.md"))
    return of_pieces("numbers on pages", pieces, rng)
