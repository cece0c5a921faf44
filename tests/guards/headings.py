"""A guard on where a number is held: under its own heading, with its sign."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path

from nbformat import NotebookNode

from guards import prose
from guards.cells import printed

# Numbers that rest on cells under another heading, and those of formulas that
# no cell computes. Whoever adds one, adds it here.
LIST = Path(__file__).with_name("elsewhere.toml")
HEADING = re.compile(r"^#{1,2} (.*)$", re.MULTILINE)
SUMMARY = "Summary"  # sums up the whole chapter
FORMULA = re.compile(r"\$\$.*?\$\$|(?<!\\)\$[^$\n]+\$", re.DOTALL)
COMMAND = re.compile(r"\\[A-Za-z]+|\\,")
IN_FORMULA = re.compile(r"(?<![\w.^_{,])(?:\d[\d,]*\.?\d*|\.\d+)")

Held = dict[str, set[Decimal]]


@cache
def listed() -> dict[str, list[str]]:
    """The numbers that a cell may state without its own heading's cells."""
    read = tomllib.loads(LIST.read_text("utf-8"))
    return {
        cell: many for part in read.values() for cell, many in part.items()
    }


def sections(notebook: NotebookNode) -> Iterator[tuple[str, NotebookNode]]:
    """Each cell, under the large heading before it."""
    title = ""
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            found = HEADING.findall(cell.source)
            title = f"{place}: {found[-1]}" if found else title
        yield title, cell


def held_by_heading(notebook: NotebookNode) -> dict[str, Held]:
    """The numbers under each heading: all, and by sign."""
    held: dict[str, Held] = defaultdict(lambda: defaultdict(set))
    for title, cell in sections(notebook):
        if cell.cell_type != "code":
            continue
        text = f"{cell.source}\n{printed(cell)}"
        for part in (title, SUMMARY):
            held[part]["all"] |= prose.numbers_of(text)
            held[part]["-"] |= prose.negative_numbers_of(text)
            held[part]["+"] |= positive_numbers_of(text)
    return held


@cache
def positive_numbers_of(text: str) -> frozenset[Decimal]:
    """Every number in code or in what it prints that no minus precedes."""
    return frozenset(
        prose.number(match.group())
        for match in prose.CELL_NUMBER.finditer(text)
        if match.group()[:1] not in ("-", "−")
        and any(sign.isdigit() for sign in match.group().partition("e")[0])
    )


def in_formulas(text: str) -> Iterator[str]:
    """The numbers of a text's formulas; a minus there may be an operation."""
    for formula in FORMULA.findall(text):
        plain = COMMAND.sub(" ", formula.replace("{,}", ","))
        for match in IN_FORMULA.finditer(plain):
            yield match.group().rstrip(",.")


def stated(cell: NotebookNode) -> Iterator[tuple[str, str]]:
    """The numbers that a cell states, each with the sign that it must have."""
    text = prose.not_recalled(prose.words_of(cell))
    for number in prose.in_prose(text):
        yield number, "-" if number[0] in "-−" else "+"
    if cell.cell_type == "markdown":
        yield from ((number, "all") for number in in_formulas(text))


def far_numbers(notebook: NotebookNode) -> list[str]:
    """A number is in a cell under its own heading, with its sign.

    One in the summary is in a cell of the chapter.
    """
    held = held_by_heading(notebook)
    found = []
    for title, cell in sections(notebook):
        where = SUMMARY if title.endswith(f": {SUMMARY}") else title
        said = {*cell.metadata.get("numbers", {})}
        said |= prose.READ_OFF.get(cell.id, set())
        said |= {*listed().get(cell.id, [])}
        found += [
            f"{cell.id}: under its heading no cell holds the number {number}"
            for number, sign in stated(cell)
            if not prose.is_small_or_year(number)
            and number not in said
            and not prose.is_held(number, held[where][sign])
        ]
    return found
