"""The table of corruptions: what a generator planted, and what caught it.

The directive ``corruptions`` draws it from the committed ledger of
`tools.measure.corruptions`, of the half that nobody saw while holes were
closed.
"""

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

LEDGER = Path("book", "measurements", "corruptions.json")
HALF = "held"
HEAD = ("what was corrupted", "tried", "a test", "shown", "missed", "caught")
EDITS = ("what was edited", "tried", "shown", "red")


def half(root: Path) -> dict[str, Any]:
    """What became of the corruptions of the half that nobody saw."""
    return json.loads((root / LEDGER).read_text("utf-8"))["halves"][HALF]


def rows(kinds: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row a kind, the worst caught last."""
    found = []
    for name, row in kinds.items():
        tried, caught = row["tried"], row["caught"]
        low, high = (round(100 * share) for share in row["interval"])
        share = f"{caught / tried:.0%} ({low} to {high})"
        tests = sum(row["by a test"].values())
        counts = (tried, tests, row["by the record"], tried - caught)
        found.append((-caught / tried, (name, *map(str, counts), share)))
    return [row for _, row in sorted(found)]


def edited(rules: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row a sort of edit that ought to pass."""
    return [
        (name, *(str(row[key]) for key in ("tried", "shown", "red")))
        for name, row in sorted(rules.items())
    ]


def table(head: tuple[str, ...], body: list[tuple[str, ...]]) -> nodes.table:
    """A table of plain words; all but the first column are numbers."""
    group = nodes.tgroup(cols=len(head))
    for place in range(len(head)):
        group += nodes.colspec(colwidth=1 if place else 3)
    for part, lines in ((nodes.thead, [head]), (nodes.tbody, body)):
        block = part()
        for words in lines:
            row = nodes.row()
            for word in words:
                row += nodes.entry("", nodes.paragraph("", word))
            block += row
        group += block
    return nodes.table("", group, classes=["corruptions"])


class Corruptions(Directive):
    """Both tables: corruptions by kind, and edits that ought to pass."""

    def run(self) -> list[nodes.Node]:
        """The tables, read from the ledger."""
        env = self.state.document.settings.env
        env.note_dependency(str(LEDGER))
        found = half(Path(env.srcdir))
        return [
            table(HEAD, rows(found["kinds"])),
            table(EDITS, edited(found["harmless"])),
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about the directive."""
    app.add_directive("corruptions", Corruptions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
