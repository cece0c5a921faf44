"""Words for their opposites: in prose, descriptions, tables, questions."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tools.measure.corruptions import texts
from tools.measure.corruptions.corruption import Corruption, kind
from tools.measure.corruptions.kinds.numerals import lines_of, of_pieces
from tools.measure.corruptions.texts import Piece


def turned_round(name: str, pieces: list[Piece]) -> Iterator[Corruption]:
    """Each word that has an opposite, for that."""
    for piece in pieces:
        for match, becomes in texts.opposites(piece.text):
            text = texts.replaced(piece.text, match, becomes)
            around = piece.text[max(match.start() - 20, 0) : match.end() + 20]
            yield Corruption(
                name,
                "opposite",
                f"{piece.place} at {match.start()}: {around!r}",
                match.group(),
                becomes,
                {piece.path: partial(piece.put, text)},
            )


def exercises(root: Path) -> Iterator[Piece]:
    """The cells from the heading "Exercises" to the next of its level."""
    path, asked = "", False
    for piece in texts.cells(root):
        asked = asked and piece.path == path
        path = piece.path
        if piece.text.lstrip().startswith("## "):
            asked = piece.text.lstrip().startswith("## Exercises")
        if asked:
            yield piece


@kind("opposites in prose")
def prose(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Those in free sentences, which no machine understands."""
    asked = {piece.place for piece in exercises(root)}
    free = (p for p in texts.cells(root) if p.place not in asked)
    return turned_round("opposites in prose", list(lines_of(free, "text")))


@kind("opposites in tables")
def tables(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Those in the rows of a table."""
    pieces = list(lines_of(texts.cells(root), "tables"))
    return turned_round("opposites in tables", pieces)


@kind("opposites in descriptions")
def descriptions(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Those in what describes a figure."""
    return turned_round("opposites in descriptions", [*texts.alts(root)])


@kind("exercises")
def asked(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Words and numbers of a question, or of what explains its solution."""
    pieces = list(exercises(root))
    yield from turned_round("exercises", pieces)
    yield from of_pieces("exercises", pieces, rng)
