"""Numbers about the book itself, counted when the site is built.

``{count}`code cells``` in a page becomes the number of them; `COUNTS` lists
what can be counted. So no such number is typed, and none goes stale.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from docutils import nodes
from ledger import read_ledger
from record import read_record
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

IGNORED = "nbval-ignore-output"
SOURCES = ("*.ipynb", "*.toml", "mutants.json", "hostile.json")


def code_cells(book: Path) -> Iterator[dict]:
    """The code cells of every notebook in the book."""
    for path in sorted(book.rglob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                yield cell


def figures(book: Path) -> int:
    """How many outputs are pictures."""
    return sum(
        "image/png" in output.get("data", {})
        for cell in code_cells(book)
        for output in cell["outputs"]
    )


def not_compared(book: Path) -> int:
    """How many code cells nbval runs without comparing their output."""
    return sum(
        IGNORED in cell["metadata"].get("tags", [])
        for cell in code_cells(book)
    )


def verdicts(verdict: str) -> Callable[[Path], int]:
    """A count of the claims with this verdict."""
    return lambda book: sum(
        claim.verdict == verdict for claim in read_ledger(book / "claims")
    )


def mutants(book: Path) -> list[str]:
    """What became of each planted mistake: caught, or how it was not."""
    path = book / "measurements" / "mutants.json"
    modules = json.loads(path.read_text("utf-8"))["modules"]
    return [became for one in modules.values() for became in one.values()]


def hostile(*names: str) -> Callable[[Path], int]:
    """A count of what came of hostile inputs, in the draw tried last."""

    def count(book: Path) -> int:
        path = book / "measurements" / "hostile.json"
        draws = json.loads(path.read_text("utf-8"))["seeds"].values()
        return sum([*draws][-1][name] for name in names)

    return count


def by_strangers(book: Path) -> int:
    """How many tests tell a story of somebody's own inputs."""
    paths = (book.parent / "tests" / "hostile").glob("test_strange*.py")
    return sum(path.read_text("utf-8").count("\ndef test_") for path in paths)


VERDICTS = (
    *("right", "refused clearly", "wrong", "accepted nonsense"),
    *("obscure error", "hang"),
)


def tried(book: Path) -> int:
    """In how many settings the conclusions were tried."""
    rows = read_record(book / "conclusions")
    return sum(len(row.settings()) for row in rows)


def labs(book: Path) -> int:
    """How many pages show a lab."""
    texts = (path.read_text("utf-8") for path in book.rglob("*.ipynb"))
    return sum('"anywidget"' in text for text in texts)


COUNTS: dict[str, Callable[[Path], int]] = {
    "notebooks": lambda book: len(list(book.rglob("*.ipynb"))),
    "code cells": lambda book: len(list(code_cells(book))),
    "cells not compared": not_compared,
    "figures": figures,
    "claims": lambda book: len(read_ledger(book / "claims")),
    "claims with a test": lambda book: sum(
        claim.test is not None for claim in read_ledger(book / "claims")
    ),
    "claims without a test": lambda book: sum(
        claim.test is None for claim in read_ledger(book / "claims")
    ),
    "conclusions": lambda book: len(read_record(book / "conclusions")),
    "chapters with conclusions": lambda book: len(
        {row.chapter for row in read_record(book / "conclusions")}
    ),
    "planted mistakes": lambda book: len(mutants(book)),
    "caught mistakes": lambda book: mutants(book).count("caught"),
    "settings of conclusions": tried,
    "labs": labs,
    "hostile checks": hostile(*VERDICTS),
    "callables tried": hostile("callables"),
    "tests by strangers": by_strangers,
    **{f"hostile: {name}": hostile(name) for name in VERDICTS},
    "wrong claims": verdicts("wrong"),
    "contradicting claims": verdicts("contradicts-another-source"),
    "claims with a caveat": verdicts("holds-with-caveat"),
    "claims not reproducible": verdicts("not-reproducible"),
    "claims that hold": verdicts("holds"),
}


class Count(SphinxRole):
    """The role ``count``."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The number, or a message that lists what can be counted."""
        book = Path(self.env.srcdir, "book")
        for kind in SOURCES:
            for path in book.rglob(kind):
                self.env.note_dependency(str(path))
        if self.text not in COUNTS:
            known = ", ".join(COUNTS)
            message = self.inliner.reporter.error(
                f"{self.text!r} cannot be counted, only: {known}",
                line=self.lineno,
            )
            return [], [message]
        return [nodes.Text(f"{COUNTS[self.text](book):,}")], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about the role."""
    app.add_role("count", Count())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
