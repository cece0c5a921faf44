"""What the cells of a printed table may hold, and its header."""

import re
from itertools import chain, compress

NUMBER = re.compile(  # maybe with a star, for a note below the table
    r"[-+−]?(\d{1,3}(,\d{3})+(\.\d+)?|\d+\.?\d*|\.\d+)(e[-+]?\d+)?%?\*?"
    r"|[-+]?inf|nan"
)
EMPTY = {"is", "are", "of", "in", "to", "at", "and", "from", "or", "more", "="}
JOINED = {"to", "of", "±", "="}  # between the numbers of one cell
LONGEST, MOST = 40, 8  # letters of a header, and words of it and of a cell
LIST = re.compile(r", |\d%? [-+−]?[\d.]")  # of several things in a cell
MEASURED = re.compile(r"[\d.,]+%|\d+\.\d+")  # never the end of a name
Rows = list[list[str]]


def balanced(text: str) -> bool:
    """Whether each bracket is closed."""
    return text.count("(") == text.count(")")


def are_names(cells: tuple[str, ...]) -> bool:
    """Whether each says in words what its row is about."""
    rows = [cell.split() for cell in cells]
    return not any(MEASURED.fullmatch(row[-1]) for row in rows) and all(
        any(word[0].isalpha() and word not in JOINED for word in row)
        for row in rows
    )


def is_number(cell: str) -> bool:
    """Whether a cell is a number, a range, or a number of so many."""
    words = [word.strip("()") for word in cell.split()]
    return bool(NUMBER.fullmatch(words[0])) and all(
        NUMBER.fullmatch(word) or word in JOINED | {"in"} for word in words
    )


def are_values(cells: tuple[str, ...]) -> bool:
    """Whether each is a number, a range or a word; or none is a number."""
    numbers = [bool(NUMBER.fullmatch(cell.split()[0])) for cell in cells]
    return not any(map(LIST.search, cells)) and (
        all(map(is_number, cells)) if any(numbers) else True
    )


def is_table(head: list[str], rows: Rows) -> bool:
    """Whether these are columns that can be compared, and each has a name."""
    columns = list(zip(*rows, strict=True))
    names = list(compress(columns, (not word for word in head)))
    values = list(compress(columns, head))
    said = list(filter(None, head))
    every = [*said, *chain(*columns)]
    return (
        len(names) < 2
        and all(map(are_names, names))
        and len(columns) > 1
        and all(map(are_values, values))
        and any(is_number(cells[0]) for cells in columns[1:])
        and len(set(said)) == len(said)
        and max(map(len, said)) <= LONGEST
        and all(re.search(r"\w", word) for word in said)
        and not any(EMPTY.issuperset(word.split()) for word in said)
        and all(map(balanced, every))
        and max(len(cell.split()) for cell in every) <= MOST
    )
