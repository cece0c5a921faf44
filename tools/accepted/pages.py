"""Facts of the pages: notebooks, the book's other pages, the README."""

import ast
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path

from tools.accepted.facts import FENCE, Facts, listed, of_text
from tools.build.notebooks import in_contents

HEADING = re.compile(r"^(#{1,6}) +(.+?)\s*$", re.MULTILINE)
QUESTIONS = "exercises"
OTHERS = ("README.md",)
Cell = dict


def source(cell: Cell) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def sections(cells: list[Cell]) -> Iterator[tuple[str, list[Cell]]]:
    """The cells under each heading, by the heading's name.

    A heading of the third level or below is named with those above it, as
    each exercise has its own "Solution". One that comes again is counted.
    """
    path: dict[int, str] = {}
    found: list[tuple[str, list[Cell]]] = [("", [])]
    seen: dict[str, int] = {}
    part = ""
    for cell in cells:
        for level, title, text in pieces(cell):
            if level:
                path = {n: t for n, t in path.items() if 2 < n < level}
                path[level] = title
                part = title if level <= 2 else part
                name = " / ".join(path.values())
                seen[name] = seen.get(name, 0) + 1
                again = f" ({seen[name]})" if seen[name] > 1 else ""
                found.append((name + again, []))
            found[-1][1].append({**cell, "source": text, "part": part})
    yield from found


def pieces(cell: Cell) -> Iterator[tuple[int, str, str]]:
    """A cell cut at its headings: level, title and text of each piece."""
    text = source(cell)
    if cell["cell_type"] != "markdown":
        yield 0, "", text
        return
    hidden = [match.span() for match in FENCE.finditer(text)]
    heads = [
        match
        for match in HEADING.finditer(text)
        if not any(a <= match.start() < b for a, b in hidden)
    ]
    starts = [head.start() for head in heads] + [len(text)]
    if before := text[: starts[0]].strip():
        yield 0, "", before
    for head, end in zip(heads, starts[1:], strict=True):
        yield len(head[1]), head[2], text[head.end() : end]


def of_notebook(path: Path) -> Facts:
    """What a chapter states, under each of its headings."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return {
        f"{name} · {kind}": fact
        for name, under in sections(cells)
        for kind, fact in of_section(under).items()
    }


def of_section(cells: list[Cell]) -> Facts:
    """What the cells under one heading state; of an exercise, all words."""
    asked = any(c["part"].lower().startswith(QUESTIONS) for c in cells)
    text = "\n\n".join(
        source(cell) for cell in cells if cell["cell_type"] == "markdown"
    )
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    facts = {"heading": "stands here"} | of_text(text)
    if asked and text.strip():
        facts["questions"] = text
    kinds = {
        "alts": [a for cell in code if (a := shown(cell))],
        "comments": [c for cell in code for c in comments(source(cell))],
        "asserts": [a for cell in code for a in asserted(source(cell))],
        "tags": [json.dumps(m) for cell in code if (m := marks(cell))],
    }
    return facts | {k: listed(found) for k, found in kinds.items() if found}


def marks(cell: Cell) -> dict:
    """What a cell is marked with, apart from what its picture is called."""
    return {k: v for k, v in cell["metadata"].items() if k != "mystnb"}


def shown(cell: Cell) -> str:
    """How a cell's picture is described, and shown."""
    about = cell["metadata"].get("mystnb", {})
    return json.dumps(about, ensure_ascii=False) if about else ""


def comments(code: str) -> list[str]:
    """The comments of a cell that are more than a word."""
    return re.findall(r"(?:^|\s)#\s?(.+)$", code, re.MULTILINE)


@functools.cache
def asserted(code: str) -> list[str]:
    """What a cell asserts, as it is written."""
    nodes = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Assert)]
    return [ast.get_source_segment(code, node) or "" for node in nodes]


def of_page(path: Path) -> Facts:
    """What a page without code states, under each of its headings."""
    page = {"cell_type": "markdown", "source": path.read_text("utf-8")}
    return {
        f"{name} · {kind}": fact
        for name, under in sections([page])
        for kind, fact in of_text("\n\n".join(map(source, under))).items()
    }


def readers(root: Path) -> dict[str, Facts]:
    """The facts of every page, by the name of its record."""
    found = {}
    for path in in_contents(root):
        name = path.relative_to(root).with_suffix("").as_posix()
        found[name.replace("/", ".")] = of_notebook(path)
    together: Facts = {}
    others = sorted((root / "book").rglob("*.md"))
    for path in [*others, *(root / name for name in OTHERS)]:
        name = path.relative_to(root).as_posix()
        together |= {f"{name}: {k}": v for k, v in of_page(path).items()}
    return found | {"pages": together}
