"""What a cell printed as numbers in rows, as a table.

A notebook's output is text, and stays so in the notebook. On the page, one
that is tensors and nothing else becomes tables, and so do lines that fall
into the same columns, of which one holds numbers: digits under digits, wide
ones scroll, and ``printed-tables.js`` shades, sorts and copies them. The cells
are the text's own words; whatever does not fit stays text, in smaller letters
if with them its lines fit into the page's.
"""

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby

from docutils import nodes
from printed_cells import NUMBER, Rows, is_number
from printed_words import in_words
from sphinx.application import Sphinx

NONE = {"–", "-"}  # where a number could stand
TENSOR = re.compile(r"tensor\((\[.*?\])((?:, \w+=[\w.]+)*)\)", re.DOTALL)
ROW = re.compile(r"\[([^\[\]]*)\]")
GAP = re.compile(r" {2,}")
LETTER = re.compile(r"[^\W\d_]")
WORD = re.compile(r"[^\W\d_]|[(“\"']")  # how one begins
VERDICTS = 2  # words of yes and no
SMALL = 8  # rows and columns of what can be shaded
WIDEST = 16  # columns of a tensor that fit
LEAST = 3  # lines of what is called a table
LINE, LONG = 82, 96  # letters in a line of the page; and in one of small ones
NARROW = 38  # and in one of a phone's page
Table = tuple[list[str], Rows, str]  # a header, the rows, and how it is marked


class Markup(str):
    """Text that is HTML."""


def tensors(text: str) -> list[tuple[Rows, str]]:
    """The rows of each tensor, and what is said after them; or nothing."""
    found = []
    rest = TENSOR.sub("", text)
    if rest.strip("(), \n"):
        return []  # something else besides
    for inside, said in TENSOR.findall(text):
        if "..." in inside or inside.startswith("[[["):
            return []
        rows = [re.findall(r"[^\s,]+", row) for row in ROW.findall(inside)]
        if len({len(row) for row in rows}) != 1 or len(rows[0]) > WIDEST:
            return []
        found.append((rows, said.removeprefix(", ")))
    many = any(len(rows) > 1 for rows, _ in found)
    return found if many else []


def cells(line: str) -> list[str]:
    """A line's words, parted where two blanks are; numbers also by one."""
    found: list[str] = []
    for part in GAP.split(line.strip()):
        words = part.split(" ")
        numbers = all(NUMBER.fullmatch(word) or word in NONE for word in words)
        found += words if numbers else [part]
    return found


def columns(lines: list[str]) -> tuple[list[str], Rows] | None:
    """A header, which may be empty, and the rows; or None."""
    head, *rows = map(cells, lines)
    width = len(rows[0])
    if width < 2 or any(len(row) != width for row in rows):
        return None
    if len(head) == width - 1 and lines[0].startswith("  "):
        head = ["", *head]  # over the names of the rows stands nothing
    if len(head) != width:
        return None
    over = [word for word, n in zip(head, measured(rows), strict=True) if n]
    if any(NUMBER.fullmatch(word) for word in over):
        rows, head = [head, *rows], []
    elif all(word[:1].isdigit() for word in over):
        return None  # no header, and no row like the others
    known = measured(rows)
    return (head, rows) if any(known if head else known[1:]) else None


def measured(rows: Rows) -> list[bool]:
    """Of each column, whether it holds numbers or ranges and nothing else."""
    said = [set(column) - NONE for column in zip(*rows, strict=True)]
    return [bool(cells) and all(map(is_number, cells)) for cells in said]


def numbers_in(rows: Rows) -> list[bool]:
    """Of each column, whether it holds numbers and nothing else."""
    said = [set(column) - NONE for column in zip(*rows, strict=True)]
    return [
        bool(cells) and all(NUMBER.fullmatch(cell) for cell in cells)
        for cells in said
    ]


def either(lines: list[str]) -> Table | None:
    """Lines in the same columns, or of the same words."""
    if read := columns(lines):
        return (*read, "lines")
    read = in_words(lines)
    return read and (*read, "lines in-words")


def parts(text: str) -> list[str | Table]:
    """A text's lines, but tables where there are, each as long as can be."""
    lines = text.rstrip("\n").split("\n")
    found: list[str | Table] = []
    while lines:
        ends = range(len(lines), LEAST - 1, -1)
        tried = ((end, either(lines[:end])) for end in ends)
        end, read = next((one for one in tried if one[1]), (1, None))
        found.append(read or lines[0])
        lines = lines[end:]
    return found


def is_prose(line: str) -> bool:
    """Whether a line cannot be a row or the header of a table beside it."""
    last = line.split(" ")[-2:]
    two = len(last) == 2 and all(NUMBER.fullmatch(word) for word in last)
    return not (line.startswith(" ") or GAP.search(line.strip()) or two)


def is_broken(one: str | Table, other: str | Table) -> bool:
    """Whether two tables are one, and the names of its rows their headers."""
    if isinstance(one, str) or isinstance(other, str):
        return False
    return bool(one[0]) and one[0] != other[0] and one[0][1:] == other[0][1:]


def after(cell: str) -> int:
    """How many characters stand from the decimal point on."""
    place = cell.find(".")
    return len(cell) - place if place >= 0 else 0


def body(rows: Rows) -> Iterator[str]:
    """The rows as HTML, each number with its point below the others.

    A word, nan or inf, ends where the longest number does.
    """
    known = numbers_in(rows)
    most = [max(map(after, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "<tr>"
        for cell, number, room in zip(row, known, most, strict=True):
            less = 0 if cell[-1:].isalpha() else room - after(cell)
            style = f' style="--less:{less}"' if number and less else ""
            mark = ' class="n"' if number else ""
            yield f"<td{mark}{style}>{escape(cell)}</td>"
        yield "</tr>"


def names(rows: Rows) -> list[str]:
    """Where each row has a name, in words: first, last or both.

    Two numbers, or a number of things, are none; nor is what stands behind
    the numbers and is one of two words: a verdict.
    """
    known = measured(rows)
    first, *_, last = zip(*rows, strict=True)
    found = {
        "first": not known[0] and any(map(LETTER.search, first)),
        "last": not known[-1]
        and all(known[:-1])  # words among numbers: the last is no name
        and all(map(WORD.match, last))
        and len(set(last)) > VERDICTS,
    }
    return [place for place, is_name in found.items() if is_name]


def named(rows: Rows, head: list[str]) -> list[str]:
    """What marks a table too wide for a phone, of rows that have a name.

    There the name, before or behind the numbers, stands above them.
    """
    every = [*rows, [f"{word} ↕" for word in head]] if head else rows
    widths = [max(map(len, column)) + 1 for column in zip(*every, strict=True)]
    if len(widths) < 3 or sum(widths) <= NARROW or not names(rows):
        return []
    return ["named", names(rows)[0]]


def is_roomy(rows: Rows, head: list[str]) -> bool:
    """Whether a phone has room between a table's columns, or scrolls it."""
    every = [*rows, [f"{word} ↕" for word in head]] if head else rows
    widths = [max(map(len, column)) + 2 for column in zip(*every, strict=True)]
    least = sum(max(map(len, column)) for column in zip(*rows, strict=True))
    return sum(widths) <= NARROW - 2 or least > NARROW


def is_wide(rows: Rows, head: list[str]) -> bool:
    """Whether a table needs smaller letters; its header may be broken."""
    words = [max(map(len, word.split()), default=0) + 2 for word in head]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    each = map(max, widths, words) if head else widths
    return sum(width + 2 for width in each) > LINE


def table(rows: Rows, kind: str, head: list[str], said: str = "") -> str:
    """A table, within what scrolls if it is wide."""
    label = f"{len(rows)} rows of {len(rows[0])}"
    small = max(len(rows), len(rows[0])) <= SMALL and len(rows) > 1
    kinds = ["printed", kind, *(["small"] if small else [])]
    kinds += [*named(rows, head), *(["wide"] if is_wide(rows, head) else [])]
    kinds += ["roomy"] if "named" not in kinds and is_roomy(rows, head) else []
    many = f' style="--numbers:{len(rows[0]) - 1}"' if "named" in kinds else ""
    html = [f'<table class="{" ".join(kinds)}" aria-label="{label}"{many}>']
    if said:
        html.append(f"<caption>{escape(said)}</caption>")
    if head:
        known = numbers_in(rows)
        html.append("<thead><tr>")
        for word, number in zip(head, known, strict=True):
            tag = 'th scope="col"' if word else "td"
            mark = ' class="n"' if number else ""
            whole = escape(word).replace(" = ", "&nbsp;=&nbsp;")
            html.append(f"<{tag}{mark}>{whole}</{tag[:2]}>")
        html.append("</tr></thead>")
    html += ["<tbody>", *body(rows), "</tbody></table>"]
    return f'<div class="printed-table">{"".join(html)}</div>'


def drawn(text: str) -> list[str | Markup]:
    """A text's tables, and what is between them; or nothing."""
    if found := tensors(text):
        tables = [table(rows, "tensor", [], said) for rows, said in found]
        return [Markup("".join(tables))]
    read = parts(text)
    lines = [part for part in read if isinstance(part, str)]
    if len(lines) == len(read) or not all(map(is_prose, lines)):
        return []
    if any(map(is_broken, read, read[1:])):
        return []
    found: list[str | Markup] = []
    for is_text, some in groupby(read, lambda part: isinstance(part, str)):
        if is_text:
            found.append("\n".join(some))
        else:
            tables = [table(rows, kind, head) for head, rows, kind in some]
            found.append(Markup("".join(tables)))
    return found


def looks(lines: list[str]) -> list[str]:
    """Marks of lines that go on in the next, or stand in smaller letters."""
    in_columns = any(GAP.search(line.strip()) for line in lines)
    longest = max(map(len, lines), default=0)
    marks = [] if in_columns or longest < NARROW - 1 else ["prose-lines"]
    return [*marks, *(["long-lines"] if LINE < longest <= LONG else [])]


def draw(app: Sphinx, document: nodes.document, name: str) -> None:
    """Put tables in the place of texts that are tables."""
    if app.builder.format != "html":
        return
    for text in list(document.findall(nodes.literal_block)):
        kinds = set(text.get("classes", []))
        if "output" not in kinds or not {"stream", "text_plain"} & kinds:
            continue
        new: list[nodes.Node] = []
        for part in drawn(text.astext()):
            if isinstance(part, Markup):
                html = f'<div class="printed-tables">{part}</div>'
                new.append(nodes.raw("", html, format="html"))
            elif part.strip():
                new.append(text.copy())
                new[-1] += nodes.Text(part)
                new[-1].rawsource = part
        for part in new or [text]:
            if isinstance(part, nodes.literal_block):
                part["classes"] += looks(part.astext().splitlines())
        if new:
            text.parent.replace(text, new)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook."""
    app.connect("doctree-resolved", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
