"""Which tables a phone shows row by row."""

import pytest
from docutils import nodes
from phone_tables import LETTERS, is_wide


def table(*rows):
    """A table of cells, each a list of nodes or a text."""
    body = nodes.tbody()
    for row in rows:
        cells = [
            cell if isinstance(cell, nodes.Node) else nodes.Text(cell)
            for cell in row
        ]
        body += nodes.row("", *(nodes.entry("", cell) for cell in cells))
    return nodes.table("", nodes.tgroup("", body))


LONG = "x" * (LETTERS - 5)


@pytest.mark.parametrize(
    ("row", "wide"),
    [
        ((LONG, "xx"), False),
        ((LONG, "xxxxxx"), True),
        ((LONG, "a b c d e f"), False),  # words go on in the next line
        ((nodes.literal("", LONG), "x" * 20), False),  # code breaks
        ((nodes.math("", "x" * 20), nodes.math("", "x" * 20)), True),
        ((nodes.math("", r"\operatorname{x}" * 9), "x"), False),
    ],
)
def test_the_longest_words_of_its_columns_must_fit(row, wide):
    assert is_wide(table(["a", "b"], row)) is wide
