"""Notebooks, pages and modules as texts in which one piece is exchanged."""

import ast
import copy
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.accepted.facts import FENCE, MATHS, NUMERAL
from tools.build.notebooks import in_contents

CODE = re.compile(r"`[^`\n]+`")
LINKED = re.compile(r"\]\([^)\s]+\)|\{[\w:.-]+\}`[^`]+`|https?://\S+")
OPPOSITES = (
    ("row", "column"),
    ("rows", "columns"),
    ("may", "may not"),
    ("can", "cannot"),
    ("more", "less"),
    ("larger", "smaller"),
    ("largest", "smallest"),
    ("higher", "lower"),
    ("before", "after"),
    ("above", "below"),
    ("left", "right"),
    ("first", "last"),
    ("always", "never"),
    ("query", "key"),
    ("queries", "keys"),
    ("faster", "slower"),
    ("rises", "falls"),
    ("grows", "shrinks"),
    ("with", "without"),
    ("true", "false"),
    ("increases", "decreases"),
    ("every", "no"),
    ("does", "does not"),
    ("equal", "different"),
    ("upper", "lower"),
    ("past", "future"),
    ("fewer", "more"),
    ("maximum", "minimum"),
    ("is", "is not"),
)


@dataclass(frozen=True)
class Piece:
    """A text within a file, and how the file reads with another text."""

    path: str
    where: str
    text: str
    put: Callable[[str], str]

    @property
    def place(self) -> str:
        """The file, and where in it."""
        return f"{self.path}: {self.where}"


def notebook_text(notebook: dict) -> str:
    """A notebook as `make notebooks` writes it."""
    text = json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True)
    return text + "\n"


def notebooks(root: Path) -> Iterator[tuple[str, dict]]:
    """Each chapter, by its path."""
    for path in in_contents(root):
        name = path.relative_to(root).as_posix()
        yield name, json.loads(path.read_text("utf-8"))


def with_source(notebook: dict, place: int, text: str) -> str:
    """A notebook with another text in one cell."""
    other = {**notebook, "cells": [*notebook["cells"]]}
    cell = {**other["cells"][place]}
    cell["source"] = text.splitlines(keepends=True)
    other["cells"][place] = cell
    return notebook_text(other)


def cells(root: Path, of: str = "markdown") -> Iterator[Piece]:
    """The text of each cell of one type, in every chapter."""
    for name, notebook in notebooks(root):
        for place, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == of:
                yield Piece(
                    name,
                    f"cell {cell['id']}",
                    "".join(cell["source"]),
                    lambda text, n=notebook, p=place: with_source(n, p, text),
                )


def alts(root: Path) -> Iterator[Piece]:
    """The description of each figure, in every chapter."""
    for name, notebook in notebooks(root):
        for place, cell in enumerate(notebook["cells"]):
            about = cell["metadata"].get("mystnb", {}).get("image", {})
            if "alt" in about:
                yield Piece(
                    name,
                    f"description in {cell['id']}",
                    about["alt"],
                    lambda text, n=notebook, p=place: with_alt(n, p, text),
                )


def with_alt(notebook: dict, place: int, text: str) -> str:
    """A notebook with another description of one figure."""
    other = copy.deepcopy(notebook)
    other["cells"][place]["metadata"]["mystnb"]["image"]["alt"] = text
    return notebook_text(other)


def files(root: Path, *patterns: str) -> Iterator[Piece]:
    """The text of each file that fits a pattern."""
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            if path.is_file():
                name = path.relative_to(root).as_posix()
                yield Piece(name, "", path.read_text("utf-8"), str)


def strings(root: Path, *patterns: str) -> Iterator[Piece]:
    """The docstrings and other long strings of modules."""
    for whole in files(root, *patterns):
        starts = [0]
        for line in whole.text.encode().splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        tree = ast.parse(whole.text)
        formatted = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in ast.walk(node)
        }  # their places in the file are not their own
        for node in ast.walk(tree):
            if id(node) in formatted:
                continue
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                start = starts[node.lineno - 1] + node.col_offset
                text = whole.text.encode()
                end = starts[(node.end_lineno or 0) - 1]
                end += node.end_col_offset or 0
                yield Piece(
                    whole.path,
                    f"line {node.lineno}",
                    text[start:end].decode(),
                    lambda text, w=text, a=start, b=end: (
                        w[:a] + text.encode() + w[b:]
                    ).decode(),
                )


def outside(text: str, *hidden: re.Pattern[str]) -> Callable[[int], bool]:
    """Whether a position is in none of what these patterns find."""
    spans = [m.span() for pattern in hidden for m in pattern.finditer(text)]
    return lambda at: not any(a <= at < b for a, b in spans)


def numerals(text: str) -> list[re.Match[str]]:
    """The numbers in the words of a text: no formula, code or address."""
    free = outside(text, FENCE, MATHS, CODE, LINKED, re.compile(r"^\d+\.", 8))
    return [
        match
        for match in NUMERAL.finditer(text)
        if match.group()[0] != "`" and free(match.start())
    ]


def replaced(text: str, match: re.Match[str], new: str) -> str:
    """A text in which one match reads otherwise."""
    return text[: match.start()] + new + text[match.end() :]


def digit_up(number: str) -> str | None:
    """A number whose last digit is one more."""
    found = list(re.finditer(r"\d", number.partition("e")[0]))
    if not found:
        return None
    at = found[-1].start()
    return number[:at] + str((int(number[at]) + 1) % 10) + number[at + 1 :]


def turned(number: str) -> str | None:
    """A number with the other sign."""
    if number[0] in "-−":
        return number[1:]
    return "−" + number if number[0] in ".0123456789" else None


def opposites(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Each word that has an opposite, and that."""
    free = outside(text, FENCE, MATHS, CODE, LINKED)
    pairs = [pair for a, b in OPPOSITES for pair in ((a, b), (b, a))]
    for was, becomes in pairs:
        for match in re.finditer(rf"\b{was}\b", text):
            if free(match.start()):
                yield match, becomes
