"""The package's words: docstrings' shapes, the doctor's advice, labels."""

import ast
import random
import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

from tools.measure.corruptions import texts
from tools.measure.corruptions.corruption import Corruption, kind
from tools.measure.corruptions.kinds.numerals import of_pieces
from tools.measure.corruptions.kinds.words import turned_round
from tools.measure.corruptions.texts import Piece

SHAPE = re.compile(r"\((?:…|\w+)(?:, ?\w+)+\)")
WORDS = [
    (re.compile(r"\bTrue\b"), "False"),
    (re.compile(r"\bFalse\b"), "True"),
    (re.compile(r"\bNone\b"), "0"),
]
PACKAGE = "src/selfattn/**/*.py"
LONG = 25  # characters; shorter strings are names


def docstrings(root: Path) -> list[Piece]:
    """The docstrings of all but the doctor, without examples."""
    return [
        piece
        for piece in texts.strings(root, PACKAGE)
        if piece.text.startswith(('"""', 'r"""'))
        and ">>>" not in piece.text
        and "/doctor/" not in piece.path
    ]


@kind("docstrings")
def shapes(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """A shape's axes exchanged, True for False, a number."""
    pieces = docstrings(root)
    for piece in pieces:
        for match in SHAPE.finditer(piece.text):
            axes = match.group()[1:-1].split(", ")
            axes[-1], axes[-2] = axes[-2], axes[-1]
            becomes = f"({', '.join(axes)})"
            if becomes != match.group():
                yield made(piece, "shape", match, becomes)
        for pattern, becomes in WORDS:
            for match in pattern.finditer(piece.text):
                yield made(piece, "value", match, becomes)
    yield from of_pieces("docstrings", pieces, rng)


def made(
    piece: Piece, rule: str, match: re.Match[str], becomes: str
) -> Corruption:
    """A docstring in which one match reads otherwise."""
    text = texts.replaced(piece.text, match, becomes)
    return Corruption(
        "docstrings",
        rule,
        f"{piece.place} at {match.start()}",
        match.group(),
        becomes,
        {piece.path: partial(piece.put, text)},
    )


@kind("advice")
def advice(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """What the doctor says: a word for its opposite, a number."""
    pieces = [
        piece
        for piece in texts.strings(root, "src/selfattn/doctor/**/*.py")
        if len(piece.text) > LONG and ">>>" not in piece.text
    ]
    yield from turned_round("advice", pieces)
    yield from of_pieces("advice", pieces, rng)


QUOTED = re.compile(r"\"[^\"\n{}$]{3,}\"|(?<=>)[^<>\n{}$]{3,}(?=<)")
DRAWN = {
    "sign": (r"(?<=[\w)] )- (?=\w)", "+ "),
    "number": (r"(?<![\w.#])[2-8](?![\w.])", "9"),
    "order": (r" < ", " > "),
}


@kind("drawings")
def drawings(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """The labs' scripts and style sheets: words exchanged, numbers, colours.

    And the words of figures, exchanged in the modules that draw them.
    """
    scripts = list(texts.files(root, "src/selfattn/labs/**/*.js"))
    plots = list(texts.files(root, "src/selfattn/plots/*.py"))
    for piece in [*scripts, *plots]:
        yield from exchanged(piece)
    for piece in scripts:
        yield from each(piece, DRAWN)
    for piece in texts.files(root, "src/selfattn/labs/**/*.css"):
        yield from each(piece, {"colour": (r"#[0-9a-f]{2}", "#7f")})


def exchanged(piece: Piece) -> Iterator[Corruption]:
    """Each string of a file in the place of the next, and that in its."""
    for one, two in pairwise(QUOTED.finditer(piece.text)):
        if one.group() == two.group():
            continue
        text = (
            piece.text[: one.start()]
            + two.group()
            + piece.text[one.end() : two.start()]
            + one.group()
            + piece.text[two.end() :]
        )
        if piece.path.endswith(".py") and not parses(text):
            continue  # between the parts of one f-string: no Python at all
        yield Corruption(
            "drawings",
            "words exchanged",
            f"{piece.path} at {one.start()}",
            one.group(),
            two.group(),
            {piece.path: text},
        )


def parses(text: str) -> bool:
    """Whether a text is Python; what is not would stop every test."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def each(
    piece: Piece, rules: dict[str, tuple[str, str]]
) -> Iterator[Corruption]:
    """Each place of a file where one of the patterns fits."""
    for rule, (pattern, becomes) in rules.items():
        for match in re.finditer(pattern, piece.text):
            line = piece.text[: match.start()].rpartition("\n")[2]
            if line.lstrip().startswith(("//", "*", "/*")):
                continue
            yield Corruption(
                "drawings",
                rule,
                f"{piece.path} at {match.start()}",
                line + match.group(),
                becomes,
                {piece.path: texts.replaced(piece.text, match, becomes)},
            )
